//! A batch: the mutations that are applied together or not at all. Plain data; applying it is each engine's own.

use bytes::Bytes;

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// The key has this value from now on.
    Put {
        /// The key.
        key: Vec<u8>,
        /// Its value, possibly empty.
        value: Bytes,
    },
    /// The key has no value from now on; it need not have had one.
    Delete {
        /// The key.
        key: Vec<u8>,
    },
}

/// Mutations in the order in which they are applied: of two for the same key the later one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    mutations: Vec<Mutation>,
    bytes: usize,
}

impl Batch {
    /// A batch without mutations; writing it does nothing.
    pub const fn new() -> Self {
        Batch { mutations: Vec::new(), bytes: 0 }
    }

    /// Appends: `key` has `value` from then on.
    pub fn put(&mut self, key: impl Into<Vec<u8>>, value: impl Into<Bytes>) {
        let (key, value) = (key.into(), value.into());
        self.bytes += key.len() + value.len();
        self.mutations.push(Mutation::Put { key, value });
    }

    /// Appends: `key` has no value from then on.
    pub fn delete(&mut self, key: impl Into<Vec<u8>>) {
        let key = key.into();
        self.bytes += key.len();
        self.mutations.push(Mutation::Delete { key });
    }

    /// Appends every mutation of `other`, in its order.
    pub fn append(&mut self, mut other: Batch) {
        self.bytes += other.bytes;
        self.mutations.append(&mut other.mutations);
    }

    /// The number of mutations.
    pub fn len(&self) -> usize {
        self.mutations.len()
    }

    /// Whether there is nothing to apply.
    pub fn is_empty(&self) -> bool {
        self.mutations.is_empty()
    }

    /// The sum of the lengths of all keys and values, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The mutations in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Mutation> {
        self.mutations.iter()
    }
}

impl IntoIterator for Batch {
    type Item = Mutation;
    type IntoIter = std::vec::IntoIter<Mutation>;
    fn into_iter(self) -> Self::IntoIter {
        self.mutations.into_iter()
    }
}

impl<'a> IntoIterator for &'a Batch {
    type Item = &'a Mutation;
    type IntoIter = std::slice::Iter<'a, Mutation>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_it_holds() {
        let mut batch = Batch::new();
        assert!(batch.is_empty());
        batch.put(*b"key", vec![1, 2]);
        batch.delete(b"gone".as_slice());
        let mut more = Batch::new();
        more.put(vec![0], Bytes::new());
        batch.append(more);
        assert_eq!((batch.len(), batch.bytes()), (3, 10));
        assert_eq!(batch.iter().last(), Some(&Mutation::Put { key: vec![0], value: Bytes::new() }));
    }
}
