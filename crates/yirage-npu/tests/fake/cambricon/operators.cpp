// libcnnl.so: the operators, by the prototypes of cnnl.h. Each computes in double and rounds once; all but copies and fills want
// their elements one after the other, and operands of as many dimensions as the result.
#include "descriptions.hpp"

#include <algorithm>
#include <cmath>

namespace {

using Elements = std::vector<double>;

enum : int { kAdd = 0, kSub = 1, kMul = 2, kSum = 0, kLargest = 3, kUnequal = 1, kUpdate = 3, kFloatType = 2 };

// A number that no public header has.
int hidden(int number) { return number + machine().settings().numbers; }

uint64_t bytes_of(const Shaped &tensor) { return tensor.elements() * element_bytes(tensor.type); }

template <typename F>
int unary(const char *name, void *handle, int prefer, void *xd, const void *x, void *yd, void *y, F f) {
    Call call(name);
    auto *h = call.handle(handle);
    Shaped a = call.dense(xd, x), out = call.dense(yd, y);
    call.want(prefer >= 0 && prefer <= 2, "a preference that is not known");
    call.want(is_float(a.type) && a.type == out.type && a.dims == out.dims, "floats of one type and shape");
    return call.runs(h, nullptr, 0, 0, [=](Device &device) {
        Elements elements;
        if (!load(device, a, elements)) return 0;
        for (auto &element : elements) element = f(element);
        return int(store(device, out, elements));
    });
}

// Two operands that spread to the result, each with as many dimensions.
void want_pair(Call &call, const Shaped &a, const Shaped &b, const Shaped &out, int type) {
    call.want(a.type == b.type && out.type == type, "elements of one type");
    call.want(a.dims.size() == out.dims.size() && b.dims.size() == out.dims.size(), "as many dimensions");
    call.want(spread(a.dims, b.dims) == out.dims, "an output of the inputs' shape together");
}

template <typename F>
int binary(Call &call, Handle *h, Shaped a, Shaped b, Shaped out, void *workspace, size_t bytes, uint64_t wanted, F f) {
    return call.runs(h, workspace, bytes, wanted, [=](Device &device) {
        Elements left, right;
        if (!load(device, a, out.dims, left) || !load(device, b, out.dims, right)) return 0;
        for (size_t i = 0; i < left.size(); i++) left[i] = f(left[i], right[i]);
        return int(store(device, out, left));
    });
}

float single(Call &call, const void *number) {
    call.want(number, "a null pointer");
    return number ? *static_cast<const float *>(number) : 0;
}

}  // namespace

#define UNARY(NAME, EXPRESSION)                                                                       \
    EXPORTED int NAME(void *handle, void *xd, const void *x, void *yd, void *y) {                     \
        return unary(#NAME, handle, 0, xd, x, yd, y, [](double x) -> double { return EXPRESSION; });  \
    }
#define NEAR(NAME, EXPRESSION)                                                                            \
    EXPORTED int NAME(void *handle, int prefer, void *xd, const void *x, void *yd, void *y) {             \
        return unary(#NAME, handle, prefer, xd, x, yd, y, [](double x) -> double { return EXPRESSION; }); \
    }

UNARY(cnnlAbs, std::fabs(x))
UNARY(cnnlNegTensor, -x)
UNARY(cnnlReciprocal, 1 / x)
NEAR(cnnlExp_v2, std::exp(x))
NEAR(cnnlSqrt_v2, std::sqrt(x))
NEAR(cnnlRsqrt_v2, 1 / std::sqrt(x))
NEAR(cnnlErf_v2, std::erf(x))

EXPORTED int cnnlLog_v2(void *handle, int prefer, int base, void *xd, const void *x, void *yd, void *y) {
    if (base) return machine().refuse("cnnlLog_v2", kBadParam, "a base that is not known");
    return unary("cnnlLog_v2", handle, prefer, xd, x, yd, y, [](double x) { return std::log(x); });
}
EXPORTED int cnnlTransform_v2(void *handle, int mode, const void *alpha, void *xd, const void *x, const void *beta, void *yd,
                              void *y) {
    Call call("cnnlTransform_v2");
    call.want(mode == 0, "numbers of the host");
    double factor = single(call, alpha), term = single(call, beta);
    if (!call.is_right()) return call.answer();
    return unary("cnnlTransform_v2", handle, 0, xd, x, yd, y, [=](double x) { return factor * x + term; });
}

EXPORTED int cnnlSetOpTensorDescriptor(void *given, int how, int type, int nan) {
    Call call("cnnlSetOpTensorDescriptor");
    auto *made = call.in<Arithmetic>(given, Kind::arithmetic);
    call.want(type == kFloatType && (nan == 0 || nan == 1), "f32, and a way with NaN");
    if (how != kAdd && how != hidden(kSub) && how != hidden(kMul)) return call.refuse();
    if (call.is_right()) made->how = how;
    return call.answer();
}
EXPORTED int cnnlGetOpTensorWorkspaceSize_v2(void *handle, void *given, const void *alpha1, void *ad, const void *a,
                                             const void *alpha2, void *bd, const void *b, const void *beta, void *yd,
                                             const void *y, size_t *bytes) {
    Call call("cnnlGetOpTensorWorkspaceSize_v2");
    call.handle(handle);
    call.in<Arithmetic>(given, Kind::arithmetic);
    call.want(alpha1 && alpha2 && beta && a && b && y, "a null pointer");
    call.tensor(ad, a), call.tensor(bd, b);
    return call.says(bytes, 128 + bytes_of(call.tensor(yd, y)));
}
EXPORTED int cnnlOpTensor(void *handle, void *given, const void *alpha1, void *ad, const void *a, const void *alpha2, void *bd,
                          const void *b, void *workspace, size_t bytes, const void *beta, void *yd, void *y) {
    Call call("cnnlOpTensor");
    auto *h = call.handle(handle);
    auto *op = call.in<Arithmetic>(given, Kind::arithmetic);
    Shaped left = call.dense(ad, a), right = call.dense(bd, b), out = call.dense(yd, y);
    call.want(is_float(left.type), "floats");
    want_pair(call, left, right, out, left.type);
    double p = single(call, alpha1), q = single(call, alpha2);
    call.want(single(call, beta) == 0, "a share of 0 of the output");
    call.want(op && op->how >= 0, "an operation that was not chosen");
    if (!call.is_right()) return call.answer();
    int how = op->how;
    return binary(call, h, left, right, out, workspace, bytes, 128 + bytes_of(out), [=](double x, double y) {
        return how == kAdd ? p * x + q * y : how == hidden(kSub) ? p * x - q * y : p * x * q * y;
    });
}

EXPORTED int cnnlGetDivWorkspaceSize(void *handle, void *ad, void *bd, void *yd, size_t *bytes) {
    Call call("cnnlGetDivWorkspaceSize");
    call.handle(handle);
    call.tensor(ad, nullptr), call.tensor(bd, nullptr), call.tensor(yd, nullptr);
    return call.says(bytes, 512);
}
EXPORTED int cnnlDiv_v2(void *handle, int prefer, void *ad, const void *a, void *bd, const void *b, void *workspace,
                        size_t bytes, void *yd, void *y) {
    Call call("cnnlDiv_v2");
    auto *h = call.handle(handle);
    Shaped left = call.dense(ad, a), right = call.dense(bd, b), out = call.dense(yd, y);
    call.want(prefer >= 0 && prefer <= 2, "a preference that is not known");
    want_pair(call, left, right, out, left.type);
    return binary(call, h, left, right, out, workspace, bytes, 512, [](double x, double y) { return x / y; });
}

#define ONE_OF_TWO(NAME, EXPRESSION)                                                                               \
    EXPORTED int cnnlGet##NAME##WorkspaceSize(void *handle, void *yd, size_t *bytes) {                             \
        Call call("cnnlGet" #NAME "WorkspaceSize");                                                                \
        call.handle(handle), call.tensor(yd, nullptr);                                                             \
        return call.says(bytes, 256);                                                                              \
    }                                                                                                              \
    EXPORTED int cnnl##NAME(void *handle, void *ad, const void *a, void *bd, const void *b, void *yd, void *y,     \
                            void *workspace, size_t bytes) {                                                       \
        Call call("cnnl" #NAME);                                                                                   \
        auto *h = call.handle(handle);                                                                             \
        Shaped left = call.dense(ad, a), right = call.dense(bd, b), out = call.dense(yd, y);                       \
        want_pair(call, left, right, out, left.type);                                                              \
        return binary(call, h, left, right, out, workspace, bytes, 256, [](double x, double y) -> double {         \
            return std::isnan(x) || std::isnan(y) ? NAN : EXPRESSION;                                              \
        });                                                                                                        \
    }

ONE_OF_TWO(Maximum, std::max(x, y))
ONE_OF_TWO(Minimum, std::min(x, y))

EXPORTED int cnnlGetLogicOpWorkspaceSize(void *handle, void *ad, void *bd, void *yd, size_t *bytes) {
    Call call("cnnlGetLogicOpWorkspaceSize");
    call.handle(handle);
    call.tensor(ad, nullptr), call.tensor(bd, nullptr), call.tensor(yd, nullptr);
    return call.says(bytes, 64);
}
EXPORTED int cnnlLogicOp(void *handle, int how, void *ad, const void *a, void *bd, const void *b, void *workspace, size_t bytes,
                         void *yd, void *y) {
    Call call("cnnlLogicOp");
    auto *h = call.handle(handle);
    Shaped left = call.dense(ad, a), right = call.dense(bd, b), out = call.dense(yd, y);
    call.want(how == kUnequal, "a comparison that is known here");
    want_pair(call, left, right, out, kBool);
    return binary(call, h, left, right, out, workspace, bytes, 64, [](double x, double y) { return x != y; });
}

EXPORTED int cnnlGetSelectV2WorkspaceSize(void *handle, void *cd, void *ad, void *bd, size_t *bytes) {
    Call call("cnnlGetSelectV2WorkspaceSize");
    call.handle(handle);
    call.tensor(cd, nullptr), call.tensor(ad, nullptr), call.tensor(bd, nullptr);
    return call.says(bytes, 192);
}
EXPORTED int cnnlSelectV2(void *handle, void *cd, const void *c, void *ad, const void *a, void *bd, const void *b,
                          void *workspace, size_t bytes, void *yd, void *y) {
    Call call("cnnlSelectV2");
    auto *h = call.handle(handle);
    Shaped which = call.dense(cd, c), left = call.dense(ad, a), right = call.dense(bd, b), out = call.dense(yd, y);
    call.want(which.type == kBool && which.dims.size() == out.dims.size(), "bools of as many dimensions");
    call.want(spread(which.dims, out.dims) == out.dims, "bools that spread to the output");
    want_pair(call, left, right, out, left.type);
    return call.runs(h, workspace, bytes, 192, [=](Device &device) {
        Elements chosen, first, second;
        if (!load(device, which, out.dims, chosen) || !load(device, left, out.dims, first)) return 0;
        if (!load(device, right, out.dims, second)) return 0;
        for (size_t i = 0; i < first.size(); i++) first[i] = chosen[i] != 0 ? first[i] : second[i];
        return int(store(device, out, first));
    });
}

EXPORTED int cnnlSetReduceDescriptor_v2(void *given, const int *axes, int count, int how, int type, int nan, int indices,
                                        int index_type, float) {
    Call call("cnnlSetReduceDescriptor_v2");
    auto *made = call.in<Reduction>(given, Kind::reduction);
    call.want(axes && count == 1, "one axis");
    call.want(how == kSum || how == kLargest, "a reduction that is known here");
    call.want(type == kFloatType && (nan == 0 || nan == 1) && !indices && !index_type, "f32, and no indices");
    if (call.is_right()) made->how = how, made->axis = axes[0];
    return call.answer();
}
EXPORTED int cnnlGetReduceOpWorkspaceSize(void *handle, void *xd, void *yd, void *given, size_t *bytes) {
    Call call("cnnlGetReduceOpWorkspaceSize");
    call.handle(handle);
    call.in<Reduction>(given, Kind::reduction);
    call.tensor(xd, nullptr);
    return call.says(bytes, 2048 + bytes_of(call.tensor(yd, nullptr)));
}
EXPORTED int cnnlReduce(void *handle, void *given, void *workspace, size_t bytes, const void *alpha, void *xd, const void *x,
                        size_t index_bytes, void *indices, const void *beta, void *yd, void *y) {
    Call call("cnnlReduce");
    auto *h = call.handle(handle);
    auto *op = call.in<Reduction>(given, Kind::reduction);
    Shaped a = call.dense(xd, x), out = call.dense(yd, y);
    call.want(single(call, alpha) == 1 && single(call, beta) == 0, "all of the input, and none of the output");
    call.want(!index_bytes && !indices, "no indices");
    std::vector<int64_t> rows = a.dims;
    rows.back() = 1;
    call.want(a.type == out.type && out.dims == rows, "an output of one element a row");
    call.want(op && op->axis == int(a.dims.size()) - 1, "the innermost dimension");
    if (!call.is_right()) return call.answer();
    int how = op->how;
    return call.runs(h, workspace, bytes, 2048 + bytes_of(out), [=](Device &device) {
        Elements all, reduced;
        if (!load(device, a, all)) return 0;
        for (size_t row = 0, width = a.dims.back(); row < all.size(); row += width) {
            double most = -INFINITY, sum = 0;
            for (size_t i = row; i < row + width; i++) {
                most = std::isnan(all[i]) || std::isnan(most) ? NAN : std::max(most, all[i]);
                sum += all[i];
            }
            reduced.push_back(how == kSum ? sum : most);
        }
        return int(store(device, out, reduced));
    });
}

EXPORTED int cnnlGetCopyWorkspaceSize(void *handle, void *xd, void *yd, size_t *bytes) {
    Call call("cnnlGetCopyWorkspaceSize");
    call.handle(handle);
    call.tensor(xd, nullptr), call.tensor(yd, nullptr);
    return call.says(bytes, 64);
}
EXPORTED int cnnlCopy_v2(void *handle, void *xd, const void *x, void *yd, void *y, void *workspace, size_t bytes) {
    Call call("cnnlCopy_v2");
    auto *h = call.handle(handle);
    Shaped a = call.tensor(xd, x), out = call.tensor(yd, y);
    call.want(a.type == out.type && a.dims == out.dims, "elements of one type and shape");
    return call.runs(h, workspace, bytes, 64, [=](Device &device) {
        Elements elements;
        return int(load(device, a, elements) && store(device, out, elements));
    });
}
EXPORTED int cnnlExpand(void *handle, void *xd, const void *x, void *yd, void *y) {
    Call call("cnnlExpand");
    auto *h = call.handle(handle);
    Shaped a = call.dense(xd, x), out = call.dense(yd, y);
    call.want(a.type == out.type && a.dims.size() == out.dims.size(), "elements of one type, as many dimensions");
    call.want(spread(a.dims, out.dims) == out.dims, "a source that spreads to the output");
    return call.runs(h, nullptr, 0, 0, [=](Device &device) {
        Elements elements;
        return int(load(device, a, out.dims, elements) && store(device, out, elements));
    });
}
EXPORTED int cnnlFill_v3(void *handle, int mode, const void *value, void *yd, void *y) {
    Call call("cnnlFill_v3");
    auto *h = call.handle(handle);
    Shaped out = call.tensor(yd, y);
    call.want(mode == 0 && out.type == kF32, "a number of the host, for f32");
    double number = single(call, value);
    return call.runs(h, nullptr, 0, 0, [=](Device &device) { return int(store(device, out, Elements(out.elements(), number))); });
}

EXPORTED int cnnlCastDataType(void *handle, void *xd, const void *x, int which, void *yd, void *y) {
    Call call("cnnlCastDataType");
    auto *h = call.handle(handle);
    Shaped a = call.dense(xd, x), out = call.dense(yd, y);
    call.want(a.dims == out.dims, "an output of the input's shape");
    bool saturates = machine().settings().saturates;
    bool known = (a.type == kF32 && out.type == kF16 && (which == hidden(3) || (which == 219 && !saturates))) ||
                 (a.type == kF16 && out.type == kF32 && which == hidden(11)) ||
                 (a.type == kF32 && out.type == kI32 && which == hidden(4)) ||
                 (a.type == kF32 && out.type == kBF16 && which == hidden(30)) ||
                 (a.type == kBF16 && out.type == kF32 && which == hidden(40));
    if (!known) return call.refuse();
    bool to_largest = out.type == kF16 && which != 219;
    return call.runs(h, nullptr, 0, 0, [=](Device &device) {
        Elements elements;
        if (!load(device, a, elements)) return 0;
        for (auto &element : elements)
            if (to_largest && std::isfinite(element)) element = std::max(-65504.0, std::min(65504.0, element));
        return int(store(device, out, elements));
    });
}
EXPORTED int cnnlClip_v2(void *handle, int mode, void *xd, const void *x, const void *low, const void *high, void *yd, void *y) {
    Call call("cnnlClip_v2");
    auto *h = call.handle(handle);
    Shaped a = call.dense(xd, x), out = call.dense(yd, y);
    call.want(mode == 0 && low && high, "numbers of the host");
    call.want(a.type == kI32 && out.type == kI32 && a.dims == out.dims, "whole numbers, and an output like the input");
    if (!call.is_right()) return call.answer();
    double least = *static_cast<const int32_t *>(low), most = *static_cast<const int32_t *>(high);
    return call.runs(h, nullptr, 0, 0, [=](Device &device) {
        Elements elements;
        if (!load(device, a, elements)) return 0;
        for (auto &element : elements) element = std::max(least, std::min(most, element));
        return int(store(device, out, elements));
    });
}
EXPORTED int cnnlIndexSelect(void *handle, int dim, void *xd, const void *x, void *id, const void *index, void *yd, void *y) {
    Call call("cnnlIndexSelect");
    auto *h = call.handle(handle);
    Shaped a = call.dense(xd, x), at = call.dense(id, index), out = call.dense(yd, y);
    std::vector<int64_t> wanted = a.dims;
    wanted[0] = at.elements();
    call.want(dim == 0 && at.type == kI32 && at.dims.size() == 1, "numbers along the outermost dimension");
    call.want(a.type == out.type && out.dims == wanted, "an output of as many slices");
    return call.runs(h, nullptr, 0, 0, [=](Device &device) {
        Elements all, numbers, chosen;
        if (!load(device, a, all) || !load(device, at, numbers)) return 0;
        size_t slice = all.size() / a.dims[0];
        for (double number : numbers) {
            if (number < 0 || number >= a.dims[0]) return 0;
            chosen.insert(chosen.end(), all.begin() + size_t(number) * slice, all.begin() + (size_t(number) + 1) * slice);
        }
        return int(store(device, out, chosen));
    });
}
EXPORTED int cnnlScatterNd_v2(void *handle, int mode, void *id, const void *index, void *ud, const void *updates, void *xd,
                              const void *x, void *yd, void *y) {
    Call call("cnnlScatterNd_v2");
    auto *h = call.handle(handle);
    Shaped at = call.dense(id, index), from = call.dense(ud, updates), a = call.dense(xd, x), to = call.dense(yd, y);
    std::vector<int64_t> wanted = to.dims, places{from.dims[0], 1};
    wanted[0] = from.dims[0];
    call.want(mode == kUpdate && at.type == kI32 && at.dims == places, "lists of one number, to replace");
    call.want(from.type == to.type && a.type == to.type && from.dims == wanted, "a source of as many slices");
    call.want(a.dims == to.dims && x == y, "an input that is the output");
    return call.runs(h, nullptr, 0, 0, [=](Device &device) {
        Elements all, numbers, given;
        if (!load(device, to, all) || !load(device, at, numbers) || !load(device, from, given)) return 0;
        size_t slice = all.size() / to.dims[0];
        for (size_t i = 0; i < numbers.size(); i++) {
            if (numbers[i] < 0 || numbers[i] >= to.dims[0]) return 0;
            std::copy_n(given.begin() + i * slice, slice, all.begin() + size_t(numbers[i]) * slice);
        }
        return int(store(device, to, all));
    });
}

EXPORTED int cnnlSetMatMulDescAttr(void *given, int which, const void *value, size_t bytes) {
    Call call("cnnlSetMatMulDescAttr");
    auto *made = call.in<Product>(given, Kind::product);
    call.want(value && bytes == 4, "a number of 32 bits");
    if (!call.is_right()) return call.answer();
    int32_t number = *static_cast<const int32_t *>(value);
    if (which == 0) made->in_float = number == kFloatType;
    if (which == 4) made->by_columns = number == 1;
    call.want(which == 0 || ((which == 4 || which == 10) && (number == 0 || number == 1)), "a setting that is known");
    return call.answer();
}

static bool fit(const Product *op, const Shaped &a, Shaped &b, const Shaped &out) {
    size_t rank = b.dims.size();
    if (op && op->by_columns && rank > 1) {
        std::swap(b.dims[rank - 1], b.dims[rank - 2]);
        std::swap(b.strides[rank - 1], b.strides[rank - 2]);
    }
    return rank > 1 && products_fit(a, b, out, rank);
}
static uint64_t product_workspace(const Shaped &out) { return 1024 + 4 * std::max<int64_t>(out.elements(), 0); }

EXPORTED int cnnlGetBatchMatMulExAlgoHeuristic(void *handle, void *given, void *ad, void *bd, void *yd, void *preference,
                                               int wanted, void **choices, int *count) {
    Call call("cnnlGetBatchMatMulExAlgoHeuristic");
    call.handle(handle);
    auto *op = call.in<Product>(given, Kind::product);
    Shaped a = call.dense(ad, nullptr), b = call.dense(bd, nullptr), out = call.dense(yd, nullptr);
    call.want(!preference && wanted == 1 && choices && count, "one algorithm");
    call.want(fit(op, a, b, out), "matrices that fit each other");
    auto *choice = call.is_right() ? call.in<Choice>(*choices, Kind::choice) : nullptr;
    if (!call.is_right()) return call.answer();
    choice->of = op, choice->workspace = product_workspace(out), *count = 1;
    return kSuccess;
}
EXPORTED int cnnlGetBatchMatMulExHeuristicResult(void *choice, void *algorithm, size_t *bytes) {
    Call call("cnnlGetBatchMatMulExHeuristicResult");
    auto *chosen = call.in<Choice>(choice, Kind::choice);
    auto *made = call.in<Algorithm>(algorithm, Kind::algorithm);
    call.want(chosen && chosen->of, "a choice that was not made");
    if (call.is_right()) made->of = chosen->of, made->workspace = chosen->workspace;
    return call.says(bytes, call.is_right() ? made->workspace : 0);
}
EXPORTED int cnnlBatchMatMulEx(void *handle, void *given, void *algorithm, const void *alpha, void *ad, const void *a, void *bd,
                               const void *b, const void *beta, void *yd, void *y, void *workspace, size_t bytes) {
    Call call("cnnlBatchMatMulEx");
    auto *h = call.handle(handle);
    auto *op = call.in<Product>(given, Kind::product);
    auto *chosen = call.in<Algorithm>(algorithm, Kind::algorithm);
    Shaped left = call.dense(ad, a), right = call.dense(bd, b), out = call.dense(yd, y);
    call.want(single(call, alpha) == 1 && single(call, beta) == 0, "all of the product, and none of the output");
    call.want(op && op->in_float, "sums in f32");
    call.want(chosen && chosen->of == op, "an algorithm that was chosen for it");
    call.want(is_float(left.type) && left.type == right.type && left.type == out.type, "floats of one type");
    call.want(fit(op, left, right, out), "matrices that fit each other");
    if (!call.is_right()) return call.answer();
    return call.runs(h, workspace, bytes, product_workspace(out),
                     [=](Device &device) { return int(products(device, left, right, out)); });
}
