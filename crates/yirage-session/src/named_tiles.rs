//! The text that stands for a picture in prompts of Idefics3 and SmolVLM: each tile with its row and column in front, the whole
//! picture last. This module does not know what a tile shows.

use std::fmt::Write as _;

/// What stands in front of each tile, and behind the last.
const AROUND: &str = "<fake_token_around_image>";

/// What names the whole picture.
const WHOLE: &str = "<global-img>";

/// The text of a picture in so many rows and columns of tiles, each of which has `tokens` times the text `token`. A picture that
/// is not cut has none of either.
pub(crate) fn text(rows: u32, columns: u32, token: &str, tokens: usize) -> String {
    let tile = token.repeat(tokens);
    let mut all = String::new();
    for row in 1..=rows {
        for column in 1..=columns {
            // Writing to a string cannot fail.
            let _ = write!(all, "{AROUND}<row_{row}_col_{column}>{tile}");
        }
        all.push('\n');
    }
    if rows > 0 {
        all.push('\n');
    }
    all + AROUND + WHOLE + &tile + AROUND
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn tiles_have_their_row_and_column_and_the_whole_picture_comes_last() {
        let around = "<fake_token_around_image>";
        let whole = format!("{around}<global-img>oo{around}");
        assert_eq!(text(0, 0, "o", 2), whole);
        let rows =
            format!("{around}<row_1_col_1>oo{around}<row_1_col_2>oo\n{around}<row_2_col_1>oo{around}<row_2_col_2>oo\n");
        assert_eq!(text(2, 2, "o", 2), format!("{rows}\n{whole}"));
    }
}
