//! Contents: chunks addressed by their hash, kept in pack objects. Knows no file, no tree and no history.
