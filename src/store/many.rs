//! One statement for many rows: a statement's last `($n, …)` or `($n)` group repeated.

/// Rows that one statement carries; well under every database's limit of parameters.
pub(super) const ROWS_MAX: usize = 200;

/// Repeats the parenthesised group that holds the statement's last parameter `count` times, with
/// parameters numbered on. `insert … values ($1, $2)` for two rows becomes `… values ($1, $2), ($3, $4)`;
/// `… in (values ($4))` for two ids becomes `… in (values ($4), ($5))`.
pub(super) fn repeated(statement: &str, count: usize) -> String {
    let numbers: Vec<usize> = statement
        .split('$')
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
        .collect();
    let last = numbers.iter().copied().max().unwrap_or(0);
    let Some(at) = statement.rfind(&format!("${last}")) else { return statement.to_owned() };
    let open = statement[..at].rfind('(').unwrap_or(0);
    let close = statement[at..].find(')').map_or(statement.len(), |offset| at + offset + 1);
    let per_row = statement[open..close].matches('$').count();
    let first = last + 1 - per_row;
    let group = |row: usize| {
        let start = first + row * per_row;
        let parameters: Vec<String> = (start..start + per_row).map(|number| format!("${number}")).collect();
        format!("({})", parameters.join(", "))
    };
    let groups: Vec<String> = (0..count).map(group).collect();
    format!("{}{}{}", &statement[..open], groups.join(", "), &statement[close..])
}

#[cfg(test)]
mod tests {
    use super::repeated;

    #[test]
    fn rows_and_lists_repeat() {
        assert_eq!(
            repeated("insert into t (a, b) values ($1, $2) returning a", 2),
            "insert into t (a, b) values ($1, $2), ($3, $4) returning a"
        );
        assert_eq!(
            repeated("where p = $1 and id in (values ($2)) order by id", 3),
            "where p = $1 and id in (values ($2), ($3), ($4)) order by id"
        );
    }
}
