//! Graphs of several ops, small.

/// Attention of grouped heads, a gated unit behind a normalisation, low rank beside a product, normalised queries and
/// keys, a layer norm with its unit.
pub(crate) const ALL: [&str; 5] = [
    "graph attention {
      input %q: f32[2, 3, 4, 5]
      input %k: f32[2, 1, 4, 5]
      input %v: f32[2, 1, 4, 6]
      %kt = view{form=\"permute(0, 1, 3, 2)\"}(%k): f32[2, 1, 5, 4]
      %d = contract(%q, %kt): f32[2, 3, 4, 4]
      %s = map{expr=\"mul(x0, 0.4472136)\"}(%d): f32[2, 3, 4, 4]
      %m = reduce{kind=max, axes=\"[3]\", keep=true}(%s): f32[2, 3, 4, 1]
      %e = map{expr=\"exp(sub(x0, x1))\"}(%s, %m): f32[2, 3, 4, 4]
      %z = reduce{kind=sum, axes=\"[3]\", keep=true}(%e): f32[2, 3, 4, 1]
      %p = map{expr=\"div(x0, x1)\"}(%e, %z): f32[2, 3, 4, 4]
      %y = contract(%p, %v): f32[2, 3, 4, 6]
      %t = view{form=\"permute(0, 2, 1, 3)\"}(%y): f32[2, 4, 3, 6]
      %o = view{form=\"reshape(8, 18)\"}(%t): f32[8, 18]
      output %o
    }",
    "graph gated {
      input %x: f32[4, 8]
      input %w: f32[8]
      input %a: f32[8, 8]
      input %b: f32[8, 8]
      input %c: f32[8, 8]
      %q = reduce{kind=mean_square, axes=\"[1]\", keep=true}(%x): f32[4, 1]
      %n = map{expr=\"mul(mul(x0, rsqrt(add(x1, 0.01))), x2)\"}(%x, %q, %w): f32[4, 8]
      %g = contract(%n, %a): f32[4, 8]
      %u = contract(%n, %b): f32[4, 8]
      %h = map{expr=\"mul(silu(x0), x1)\"}(%g, %u): f32[4, 8]
      %d = contract(%h, %c): f32[4, 8]
      %y = map{expr=\"add(x0, x1)\"}(%x, %d): f32[4, 8]
      output %y
    }",
    "graph low_rank {
      input %x: f32[3, 6]
      input %w: f32[6, 6]
      input %b: f32[6, 2]
      input %a: f32[2, 6]
      %p = contract(%x, %w): f32[3, 6]
      %q = contract(%x, %b): f32[3, 2]
      %r = contract(%q, %a): f32[3, 6]
      %s = map{expr=\"mul(x0, 0.5)\"}(%r): f32[3, 6]
      %y = map{expr=\"add(x0, x1)\"}(%p, %s): f32[3, 6]
      output %y
    }",
    "graph normal_scores {
      input %q: f32[4, 6]
      input %k: f32[4, 6]
      input %v: f32[4, 6]
      %qs = reduce{kind=mean_square, axes=\"[1]\", keep=true}(%q): f32[4, 1]
      %qn = map{expr=\"div(x0, sqrt(add(x1, 0.001)))\"}(%q, %qs): f32[4, 6]
      %ks = reduce{kind=mean_square, axes=\"[1]\", keep=true}(%k): f32[4, 1]
      %kn = map{expr=\"div(x0, sqrt(add(x1, 0.001)))\"}(%k, %ks): f32[4, 6]
      %kt = view{form=\"permute(1, 0)\"}(%kn): f32[6, 4]
      %d = contract(%qn, %kt): f32[4, 4]
      %m = reduce{kind=max, axes=\"[1]\", keep=true}(%d): f32[4, 1]
      %e = map{expr=\"exp(sub(x0, x1))\"}(%d, %m): f32[4, 4]
      %z = reduce{kind=sum, axes=\"[1]\", keep=true}(%e): f32[4, 1]
      %y = contract(%e, %v): f32[4, 6]
      %o = map{expr=\"div(x0, x1)\"}(%y, %z): f32[4, 6]
      output %o
    }",
    "graph layer {
      input %x: f32[4, 6]
      input %w: f32[6]
      input %b: f32[6]
      input %a: f32[6, 6]
      %n = layer_norm{eps=0.01}(%x, %w, %b): f32[4, 6]
      %g = contract(%n, %a): f32[4, 6]
      %h = map{expr=\"gelu_erf(x0)\"}(%g): f32[4, 6]
      %l = view{form=\"slice(0:1:4, 0:1:3)\"}(%h): f32[4, 3]
      %r = view{form=\"slice(0:1:4, 3:1:3)\"}(%h): f32[4, 3]
      %c = concat{axis=1}(%r, %l): f32[4, 6]
      %y = map{expr=\"add(x0, max(x1, neg(x2)))\"}(%x, %h, %c): f32[4, 6]
      output %y
    }",
];
