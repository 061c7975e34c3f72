//! The tree of a template.

use std::sync::Arc;

/// A name of the template.
pub(super) type Name = Arc<str>;

/// A parsed template.
#[derive(Debug)]
pub(in crate::chat) struct Tree {
    pub(super) body: Vec<Stmt>,
    /// String constants; expressions name them by their index.
    pub(super) texts: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Stmt {
    pub(super) line: u32,
    pub(super) kind: StmtKind,
}

#[derive(Debug)]
pub(super) enum StmtKind {
    /// Text outside of tags.
    Data(String),
    /// `{{ expression }}`
    Emit(Expr),
    /// The conditions with their bodies, and the body of `else`.
    If(Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    For(Arc<For>),
    Set(Target, Expr),
    /// `{% set x | filters %}...{% endset %}`
    SetBlock(Target, Vec<Call>, Vec<Stmt>),
    /// `with`, `block` and `generation`: variables that end with the body.
    With(Vec<(Target, Expr)>, Vec<Stmt>),
    Macro(Arc<Macro>),
    /// `{% call(args) f() %}...{% endcall %}`
    Call(Arc<Macro>, Expr),
    /// `{% filter f %}...{% endfilter %}`
    Filter(Vec<Call>, Vec<Stmt>),
    /// An expression for its effect.
    Do(Expr),
    Break,
    Continue,
}

#[derive(Debug)]
pub(super) struct For {
    pub(super) target: Target,
    pub(super) over: Expr,
    pub(super) only_if: Option<Expr>,
    pub(super) recursive: bool,
    pub(super) body: Vec<Stmt>,
    pub(super) otherwise: Vec<Stmt>,
}

#[derive(Debug)]
pub(super) struct Macro {
    pub(super) name: Name,
    /// Parameters and their defaults.
    pub(super) params: Vec<(Name, Option<Expr>)>,
    pub(super) body: Vec<Stmt>,
    /// The special variables that the body names.
    pub(super) uses: Uses,
}

/// Which special variables of macros a body names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Uses {
    pub(super) varargs: bool,
    pub(super) kwargs: bool,
    pub(super) caller: bool,
}

/// What a value is assigned to.
#[derive(Debug)]
pub(super) enum Target {
    Name(Name),
    /// An attribute of a namespace.
    Attr(Name, Name),
    Tuple(Vec<Target>),
}

/// A filter or test by its name, with its arguments.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: Name,
    pub(super) args: Vec<Arg>,
    pub(super) line: u32,
}

#[derive(Debug)]
pub(super) enum Arg {
    Plain(Expr),
    Named(Name, Expr),
    /// `*list`
    Spread(Expr),
    /// `**dict`
    SpreadNamed(Expr),
}

#[derive(Debug)]
pub(super) struct Expr {
    pub(super) line: u32,
    /// Levels of the tree from here on.
    pub(super) depth: u32,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Rem,
    Pow,
    And,
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    Minus,
    Plus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
}

#[derive(Debug)]
pub(super) enum Kind {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    /// Index into [`Tree::texts`].
    Text(usize),
    Name(Name),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Attr(Box<Expr>, Name),
    Item(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, [Option<Box<Expr>>; 3]),
    Call(Box<Expr>, Vec<Arg>),
    Filter(Box<Expr>, Call),
    Test(Box<Expr>, Call),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<[Expr; 2]>),
    Compare(Box<Expr>, Vec<(Compare, Expr)>),
    /// `a ~ b ~ c`
    Concat(Vec<Expr>),
    /// Then, condition, else.
    If(Box<Expr>, Box<Expr>, Option<Box<Expr>>),
}

impl Arg {
    pub(super) fn expr(&self) -> &Expr {
        match self {
            Self::Plain(e) | Self::Named(_, e) | Self::Spread(e) | Self::SpreadNamed(e) => e,
        }
    }
}

impl Kind {
    /// Levels of the tree below this node.
    pub(super) fn depth(&self) -> u32 {
        let of = |items: &[Expr]| items.iter().map(|e| e.depth).max().unwrap_or(0);
        let args = |args: &[Arg]| args.iter().map(|a| a.expr().depth).max().unwrap_or(0);
        match self {
            Self::None | Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Text(_) | Self::Name(_) => 0,
            Self::List(items) | Self::Tuple(items) | Self::Concat(items) => of(items),
            Self::Dict(pairs) => pairs.iter().map(|(k, v)| k.depth.max(v.depth)).max().unwrap_or(0),
            Self::Attr(a, _) | Self::Unary(_, a) => a.depth,
            Self::Item(a, b) => a.depth.max(b.depth),
            Self::Slice(a, ends) => ends.iter().flatten().map(|e| e.depth).fold(a.depth, u32::max),
            Self::Call(a, list) => a.depth.max(args(list)),
            Self::Filter(a, call) | Self::Test(a, call) => a.depth.max(args(&call.args)),
            Self::Binary(_, pair) => of(&pair[..]),
            Self::Compare(a, rest) => rest.iter().map(|(_, e)| e.depth).fold(a.depth, u32::max),
            Self::If(a, b, c) => a.depth.max(b.depth).max(c.as_ref().map_or(0, |c| c.depth)),
        }
    }
}
