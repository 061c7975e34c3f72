//! The tree of a template.

use std::sync::Arc;

/// A name of the template.
pub(super) type JinjaName = Arc<str>;

/// A parsed template.
#[derive(Debug)]
pub(in crate::chat) struct JinjaTemplate {
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
    Emit(JinjaExpr),
    /// The conditions with their bodies, and the body of `else`.
    If(Vec<(JinjaExpr, Vec<Stmt>)>, Vec<Stmt>),
    For(Arc<JinjaForLoop>),
    Set(AssignTarget, JinjaExpr),
    /// `{% set x | filters %}...{% endset %}`
    SetBlock(AssignTarget, Vec<FilterCall>, Vec<Stmt>),
    /// `with`, `block` and `generation`: variables that end with the body.
    With(Vec<(AssignTarget, JinjaExpr)>, Vec<Stmt>),
    Macro(Arc<Macro>),
    /// `{% call(args) f() %}...{% endcall %}`
    Call(Arc<Macro>, JinjaExpr),
    /// `{% filter f %}...{% endfilter %}`
    Filter(Vec<FilterCall>, Vec<Stmt>),
    /// An expression for its effect.
    Do(JinjaExpr),
    Break,
    Continue,
}

#[derive(Debug)]
pub(super) struct JinjaForLoop {
    pub(super) target: AssignTarget,
    pub(super) over: JinjaExpr,
    pub(super) only_if: Option<JinjaExpr>,
    pub(super) recursive: bool,
    pub(super) body: Vec<Stmt>,
    pub(super) otherwise: Vec<Stmt>,
}

#[derive(Debug)]
pub(super) struct Macro {
    pub(super) name: JinjaName,
    /// Parameters and their defaults.
    pub(super) params: Vec<(JinjaName, Option<JinjaExpr>)>,
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
pub(super) enum AssignTarget {
    Name(JinjaName),
    /// An attribute of a namespace.
    Attr(JinjaName, JinjaName),
    Tuple(Vec<AssignTarget>),
}

/// A filter or test by its name, with its arguments.
#[derive(Debug)]
pub(super) struct FilterCall {
    pub(super) name: JinjaName,
    pub(super) args: Vec<JinjaArg>,
    pub(super) line: u32,
}

#[derive(Debug)]
pub(super) enum JinjaArg {
    Plain(JinjaExpr),
    Named(JinjaName, JinjaExpr),
    /// `*list`
    Spread(JinjaExpr),
    /// `**dict`
    SpreadNamed(JinjaExpr),
}

#[derive(Debug)]
pub(super) struct JinjaExpr {
    pub(super) line: u32,
    /// Levels of the tree from here on.
    pub(super) depth: u32,
    pub(super) kind: JinjaExprKind,
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
pub(super) enum JinjaExprKind {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    /// Index into [`JinjaTemplate::texts`].
    Text(usize),
    Name(JinjaName),
    List(Vec<JinjaExpr>),
    Tuple(Vec<JinjaExpr>),
    Dict(Vec<(JinjaExpr, JinjaExpr)>),
    Attr(Box<JinjaExpr>, JinjaName),
    Item(Box<JinjaExpr>, Box<JinjaExpr>),
    Slice(Box<JinjaExpr>, [Option<Box<JinjaExpr>>; 3]),
    Call(Box<JinjaExpr>, Vec<JinjaArg>),
    Filter(Box<JinjaExpr>, FilterCall),
    Test(Box<JinjaExpr>, FilterCall),
    Unary(Unary, Box<JinjaExpr>),
    Binary(Binary, Box<[JinjaExpr; 2]>),
    Compare(Box<JinjaExpr>, Vec<(Compare, JinjaExpr)>),
    /// `a ~ b ~ c`
    Concat(Vec<JinjaExpr>),
    /// Then, condition, else.
    If(Box<JinjaExpr>, Box<JinjaExpr>, Option<Box<JinjaExpr>>),
}

impl JinjaArg {
    pub(super) fn expr(&self) -> &JinjaExpr {
        match self {
            Self::Plain(e) | Self::Named(_, e) | Self::Spread(e) | Self::SpreadNamed(e) => e,
        }
    }
}

impl JinjaExprKind {
    /// Levels of the tree below this node.
    pub(super) fn depth(&self) -> u32 {
        let of = |items: &[JinjaExpr]| items.iter().map(|e| e.depth).max().unwrap_or(0);
        let args = |args: &[JinjaArg]| args.iter().map(|a| a.expr().depth).max().unwrap_or(0);
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
