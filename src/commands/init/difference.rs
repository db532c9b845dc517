//! What would change in a file that is there and stays: its lines against the proposed ones.

/// Lines that are only in the file (`-`) or only proposed (`+`), in order; nothing where the texts are the same.
pub(super) fn difference(there: &str, proposed: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (there.lines().collect(), proposed.lines().collect());
    // Length of the longest common run of lines from (row, column) on.
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for row in (0..old.len()).rev() {
        for column in (0..new.len()).rev() {
            common[row][column] = if old[row] == new[column] {
                common[row + 1][column + 1] + 1
            } else {
                common[row + 1][column].max(common[row][column + 1])
            };
        }
    }
    let (mut row, mut column, mut lines) = (0, 0, Vec::new());
    while row < old.len() || column < new.len() {
        let is_same = row < old.len() && column < new.len() && old[row] == new[column];
        if is_same {
            row += 1;
            column += 1;
        } else if column == new.len()
            || (row < old.len() && common[row + 1][column] >= common[row][column + 1])
        {
            lines.push(format!("- {}", old[row]));
            row += 1;
        } else {
            lines.push(format!("+ {}", new[column]));
            column += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_are_shown_in_order() {
        assert_eq!(difference("a\nb\nc\n", "a\nb\nc\n"), Vec::<String>::new());
        assert_eq!(difference("a\nb\nc\n", "a\nx\nc\nd\n"), ["- b", "+ x", "+ d"]);
        assert_eq!(difference("", "a\n"), ["+ a"]);
        assert_eq!(difference("a\n", ""), ["- a"]);
    }
}
