//! Things that differ by the number of a layer alone, told once.

/// A text in which a number that ends in a dot and stands behind a letter or a dot is a star: what the values of
/// several layers have in common.
pub(crate) fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        if c.is_ascii_digit() && (before == '.' || before.is_ascii_alphabetic()) {
            let mut digits = String::from(c);
            while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            out.push_str(if chars.peek() == Some(&'.') { "*" } else { &digits });
            before = '0';
        } else {
            out.push(c);
            before = c;
        }
    }
    out
}

/// Items with equal keys together, in the order of the first of each.
pub(crate) fn grouped<T, K: PartialEq>(items: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for item in items {
        let key = key(&item);
        match groups.iter_mut().find(|(k, _)| *k == key) {
            Some((_, group)) => group.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_layers_become_stars_and_others_stay() {
        let alike = |a: &str| without_numbers(a);
        assert_eq!(alike("`layers.12.q`, `l3.k`"), "`layers.*.q`, `l*.k`");
        assert_eq!(alike("map{expr=mul(x0, 0.5)} x.1 y2"), "map{expr=mul(x0, 0.5)} x.1 y2");
    }

    #[test]
    fn groups_keep_the_order_of_their_first() {
        let groups = grouped([3, 1, 5, 2], |x| x % 2);
        assert_eq!(groups, [(1, vec![3, 1, 5]), (0, vec![2])]);
    }
}
