//! Tables for people: a header, columns as wide as their content, no frame.

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, presets};

/// A table.
pub struct Table {
    header: Vec<&'static str>,
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns; a heading that begins with `>` is for numbers, which stand on the right.
    pub fn new(header: &[&'static str]) -> Self {
        Table {
            header: header.iter().map(|h| h.trim_start_matches('>')).collect(),
            right: header.iter().map(|h| h.starts_with('>')).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// The text, with a newline at the end; the heading is bold where colour is wanted.
    pub fn render(&self, color: bool) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if color {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        let bold = |h: &&str| if color { Cell::new(h).add_attribute(Attribute::Bold) } else { Cell::new(h) };
        table.set_header(self.header.iter().map(bold).collect::<Vec<_>>());
        for row in &self.rows {
            table.add_row(row.clone());
        }
        for (n, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            if self.right.get(n) == Some(&true) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut out = String::new();
        for line in table.lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_content() {
        let mut table = Table::new(&["NAME", ">SIZE"]);
        table.row(["a".into(), "12345".into()]);
        table.row(["long name".into(), "1".into()]);
        assert_eq!(table.render(false), "NAME        SIZE\na          12345\nlong name      1\n");
        assert!(table.render(true).contains("\u{1b}["));
    }
}
