// libopapi.so: the operators, by the prototypes of aclnnop/*.h. Each computes in double and rounds once.
#include "operators.hpp"

#include <algorithm>

namespace {

using Elements = std::vector<double>;

template <typename F>
int unary(const char *call, const aclTensor *x, const aclTensor *y, uint64_t *workspace, aclOpExecutor **executor, F f) {
    FirstPhase phase(call, workspace, executor);
    Shaped a = phase.in(x), out = phase.in(y);
    phase.want(is_float(a.type) && a.type == out.type, "floats of one type");
    phase.want(a.dims == out.dims, "an output of the input's shape");
    return phase.done(0, [=](Device &device) {
        Elements elements;
        if (!load(device, a, elements)) return 0;
        for (auto &element : elements) element = f(element);
        return int(store(device, out, elements));
    });
}

template <typename F>
int binary(const char *call, const aclTensor *x, const aclTensor *y, const aclTensor *z, uint64_t *workspace,
           aclOpExecutor **executor, int32_t type, F f) {
    FirstPhase phase(call, workspace, executor);
    Shaped a = phase.in(x), b = phase.in(y), out = phase.in(z);
    phase.want(a.type == b.type && out.type == (type < 0 ? a.type : type), "elements of one type");
    auto dims = spread(a.dims, b.dims);
    phase.want(!dims.empty() && dims == out.dims, "an output of the inputs' shape together");
    // What is not dense is made so first.
    return phase.done(512, [=](Device &device) {
        Elements left, right;
        if (!load(device, a, out.dims, left) || !load(device, b, out.dims, right)) return 0;
        for (size_t i = 0; i < left.size(); i++) left[i] = f(left[i], right[i]);
        return int(store(device, out, left));
    });
}

template <typename F>
int with_scalars(const char *call, const aclTensor *x, std::vector<const aclScalar *> numbers, const aclTensor *y,
                 uint64_t *workspace, aclOpExecutor **executor, F f) {
    FirstPhase phase(call, workspace, executor);
    Shaped a = phase.in(x), out = phase.in(y);
    std::vector<double> s;
    for (auto *number : numbers) s.push_back(phase.number(number));
    phase.want(a.type == out.type && a.dims == out.dims, "an output like the input");
    return phase.done(0, [=](Device &device) {
        Elements elements;
        if (!load(device, a, elements)) return 0;
        for (auto &element : elements) element = f(element, s);
        return int(store(device, out, elements));
    });
}

int product(const char *call, const aclTensor *x, const aclTensor *y, const aclTensor *z, int8_t kind, size_t rank,
            uint64_t *workspace, aclOpExecutor **executor) {
    FirstPhase phase(call, workspace, executor);
    Shaped a = phase.in(x), b = phase.in(y), out = phase.in(z);
    phase.want(kind == 0, "a way to compute that is known");
    phase.want(is_float(a.type) && a.type == b.type && a.type == out.type, "floats of one type");
    phase.want(products_fit(a, b, out, rank), "matrices that fit each other");
    return phase.done(1024 + 4 * std::max<int64_t>(out.elements(), 0),
                      [=](Device &device) { return int(products(device, a, b, out)); });
}

}  // namespace

int second_phase(const char *call, const char *first, void *workspace, uint64_t bytes, aclOpExecutor *executor,
                 void *stream) {
    if (int code = machine().enter(call, true)) return code;
    auto refuse = [&](const char *why) { return machine().refuse(call, kAclnnInvalid, why); };
    if (!executor || !executor->alive) return refuse("an executor that was used or is gone");
    if (strcmp(executor->operation, first)) return refuse("an executor of another operator");
    if (bytes < executor->workspace) return refuse("less to work in than it said it wants");
    if (bytes && !machine().is_inside(workspace, bytes)) return refuse("a workspace that is not the device's memory");
    for (auto *tensor : executor->tensors) {
        if (!tensor->alive) return refuse("a tensor of it was destroyed before it ran");
    }
    for (auto *scalar : executor->scalars) {
        if (!scalar->alive) return refuse("a scalar of it was destroyed before it ran");
    }
    Task task = executor->task;
    if (!executor->repeatable) {
        executor->alive = false;
        machine().count(&Stats::executors, -1);
    }
    return machine().submit(call, stream, [=](Device &device) {
        if (int code = machine().enter("operator", false)) return device.fault("an operator was ordered to fail"), code;
        if (bytes) {
            uint8_t *spent = device.memory(workspace, bytes);
            if (!spent) return device.fault("its workspace is gone");
            memset(spent, 0x5a, bytes);
        }
        machine().count(&Stats::runs, 1);
        return task(device) ? kSuccess : device.fault(std::string(call) + " touches memory that is not its own");
    });
}

#define UNARY(NAME, EXPRESSION)                                                                              \
    EXPORTED int NAME##GetWorkspaceSize(const aclTensor *self, aclTensor *out, uint64_t *workspace,          \
                                        aclOpExecutor **executor) {                                          \
        return unary(#NAME "GetWorkspaceSize", self, out, workspace, executor,                               \
                     [](double x) -> double { return EXPRESSION; });                                         \
    }                                                                                                        \
    SECOND_PHASE(NAME)

UNARY(aclnnSilu, x / (1 + std::exp(-x)))
UNARY(aclnnTanh, std::tanh(x))
UNARY(aclnnSigmoid, 1 / (1 + std::exp(-x)))
UNARY(aclnnExp, std::exp(x))
UNARY(aclnnLog, std::log(x))
UNARY(aclnnSqrt, std::sqrt(x))
UNARY(aclnnRsqrt, 1 / std::sqrt(x))
UNARY(aclnnReciprocal, 1 / x)
UNARY(aclnnNeg, -x)
UNARY(aclnnAbs, std::fabs(x))
UNARY(aclnnRelu, std::isnan(x) ? x : std::max(x, 0.0))

#define BINARY(NAME, TYPE, EXPRESSION)                                                                       \
    EXPORTED int NAME##GetWorkspaceSize(const aclTensor *self, const aclTensor *other, aclTensor *out,       \
                                        uint64_t *workspace, aclOpExecutor **executor) {                     \
        return binary(#NAME "GetWorkspaceSize", self, other, out, workspace, executor, TYPE,                 \
                      [](double x, double y) -> double { return EXPRESSION; });                              \
    }                                                                                                        \
    SECOND_PHASE(NAME)

BINARY(aclnnMul, -1, x *y)
BINARY(aclnnDiv, -1, x / y)
BINARY(aclnnMaximum, -1, std::isnan(x) || std::isnan(y) ? NAN : std::max(x, y))
BINARY(aclnnMinimum, -1, std::isnan(x) || std::isnan(y) ? NAN : std::min(x, y))
BINARY(aclnnNeTensor, kBool, x != y)

#define SCALED(NAME, SIGN)                                                                                   \
    EXPORTED int NAME##GetWorkspaceSize(const aclTensor *self, const aclTensor *other, const aclScalar *alpha, \
                                        aclTensor *out, uint64_t *workspace, aclOpExecutor **executor) {     \
        if (!alpha || !alpha->alive || alpha->value != 1)                                                    \
            return machine().refuse(#NAME, kAclnnInvalid, "a factor of 1 is wanted here");                   \
        return binary(#NAME "GetWorkspaceSize", self, other, out, workspace, executor, -1,                   \
                      [](double x, double y) { return x SIGN y; });                                          \
    }                                                                                                        \
    SECOND_PHASE(NAME)

SCALED(aclnnAdd, +)
SCALED(aclnnSub, -)

EXPORTED int aclnnAddsGetWorkspaceSize(const aclTensor *self, const aclScalar *other, const aclScalar *alpha, aclTensor *out,
                                       uint64_t *workspace, aclOpExecutor **executor) {
    return with_scalars("aclnnAddsGetWorkspaceSize", self, {other, alpha}, out, workspace, executor,
                        [](double x, const std::vector<double> &s) { return x + s[0] * s[1]; });
}
SECOND_PHASE(aclnnAdds)
EXPORTED int aclnnMulsGetWorkspaceSize(const aclTensor *self, const aclScalar *other, aclTensor *out, uint64_t *workspace,
                                       aclOpExecutor **executor) {
    return with_scalars("aclnnMulsGetWorkspaceSize", self, {other}, out, workspace, executor,
                        [](double x, const std::vector<double> &s) { return x * s[0]; });
}
SECOND_PHASE(aclnnMuls)
EXPORTED int aclnnClampGetWorkspaceSize(const aclTensor *self, const aclScalar *low, const aclScalar *high, aclTensor *out,
                                        uint64_t *workspace, aclOpExecutor **executor) {
    return with_scalars("aclnnClampGetWorkspaceSize", self, {low, high}, out, workspace, executor,
                        [](double x, const std::vector<double> &s) { return std::min(std::max(x, s[0]), s[1]); });
}
SECOND_PHASE(aclnnClamp)

EXPORTED int aclnnGeluV2GetWorkspaceSize(const aclTensor *x, int64_t approximate, aclTensor *y, uint64_t *workspace,
                                         aclOpExecutor **executor) {
    return unary("aclnnGeluV2GetWorkspaceSize", x, y, workspace, executor, [approximate](double x) {
        if (approximate == 0) return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
        return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    });
}
SECOND_PHASE(aclnnGeluV2)

EXPORTED int aclnnCastGetWorkspaceSize(const aclTensor *self, int32_t type, aclTensor *out, uint64_t *workspace,
                                       aclOpExecutor **executor) {
    FirstPhase phase("aclnnCastGetWorkspaceSize", workspace, executor);
    Shaped a = phase.in(self), to = phase.in(out);
    phase.want(to.type == type && a.dims == to.dims, "an output of that type and of the input's shape");
    return phase.done(0, [=](Device &device) {
        Elements elements;
        return int(load(device, a, elements) && store(device, to, elements));
    });
}
SECOND_PHASE(aclnnCast)

EXPORTED int aclnnInplaceCopyGetWorkspaceSize(aclTensor *self, const aclTensor *from, uint64_t *workspace,
                                              aclOpExecutor **executor) {
    FirstPhase phase("aclnnInplaceCopyGetWorkspaceSize", workspace, executor);
    Shaped to = phase.in(self), a = phase.in(from);
    phase.want(a.type == to.type && spread(a.dims, to.dims) == to.dims, "a source that spreads to the target");
    return phase.done(64, [=](Device &device) {
        Elements elements;
        return int(load(device, a, to.dims, elements) && store(device, to, elements));
    });
}
SECOND_PHASE(aclnnInplaceCopy)

EXPORTED int aclnnInplaceFillScalarGetWorkspaceSize(aclTensor *self, const aclScalar *value, uint64_t *workspace,
                                                    aclOpExecutor **executor) {
    FirstPhase phase("aclnnInplaceFillScalarGetWorkspaceSize", workspace, executor);
    Shaped to = phase.in(self);
    double number = phase.number(value);
    return phase.done(0, [=](Device &device) { return int(store(device, to, Elements(to.elements(), number))); });
}
SECOND_PHASE(aclnnInplaceFillScalar)

EXPORTED int aclnnInplaceMaskedFillScalarGetWorkspaceSize(aclTensor *self, const aclTensor *mask, const aclScalar *value,
                                                          uint64_t *workspace, aclOpExecutor **executor) {
    FirstPhase phase("aclnnInplaceMaskedFillScalarGetWorkspaceSize", workspace, executor);
    Shaped to = phase.in(self), where = phase.in(mask);
    double number = phase.number(value);
    phase.want(where.type == kBool && spread(where.dims, to.dims) == to.dims, "bools that spread to the target");
    return phase.done(0, [=](Device &device) {
        Elements elements, chosen;
        if (!load(device, to, elements) || !load(device, where, to.dims, chosen)) return 0;
        for (size_t i = 0; i < elements.size(); i++) elements[i] = chosen[i] != 0 ? number : elements[i];
        return int(store(device, to, elements));
    });
}
SECOND_PHASE(aclnnInplaceMaskedFillScalar)

EXPORTED int aclnnSoftmaxGetWorkspaceSize(const aclTensor *self, int64_t dim, aclTensor *out, uint64_t *workspace,
                                          aclOpExecutor **executor) {
    FirstPhase phase("aclnnSoftmaxGetWorkspaceSize", workspace, executor);
    Shaped a = phase.in(self), to = phase.in(out);
    phase.want(a.type == to.type && a.dims == to.dims && dim == int64_t(a.dims.size()) - 1, "rows, and an output like them");
    return phase.done(256, [=](Device &device) {
        Elements all;
        if (!load(device, a, all)) return 0;
        for (size_t row = 0, width = a.dims.back(); row < all.size(); row += width) {
            double most = -INFINITY, sum = 0;
            for (size_t i = row; i < row + width; i++) most = std::max(most, all[i]);
            for (size_t i = row; i < row + width; i++) sum += all[i] = std::exp(all[i] - most);
            for (size_t i = row; i < row + width; i++) all[i] /= sum;
        }
        return int(store(device, to, all));
    });
}
SECOND_PHASE(aclnnSoftmax)

EXPORTED int aclnnRmsNormGetWorkspaceSize(const aclTensor *x, const aclTensor *gamma, double epsilon, const aclTensor *y,
                                          const aclTensor *rstd, uint64_t *workspace, aclOpExecutor **executor) {
    FirstPhase phase("aclnnRmsNormGetWorkspaceSize", workspace, executor);
    Shaped a = phase.in(x), weight = phase.in(gamma), to = phase.in(y), inverse = phase.in(rstd);
    phase.want(a.type == weight.type && a.type == to.type && inverse.type == kF32, "elements of one type, and f32 of each row");
    std::vector<int64_t> rows = a.dims;
    rows.back() = 1;
    phase.want(a.dims == to.dims && weight.dims == std::vector<int64_t>{a.dims.back()} && inverse.dims == rows,
               "shapes that fit each other");
    return phase.done(2048, [=](Device &device) {
        Elements all, factors, of_rows;
        if (!load(device, a, all) || !load(device, weight, factors)) return 0;
        size_t width = a.dims.back();
        for (size_t row = 0; row < all.size(); row += width) {
            double sum = 0;
            for (size_t i = row; i < row + width; i++) sum += all[i] * all[i];
            of_rows.push_back(1 / std::sqrt(sum / width + epsilon));
            for (size_t i = 0; i < width; i++) all[row + i] *= of_rows.back() * factors[i];
        }
        return int(store(device, inverse, of_rows) && store(device, to, all));
    });
}
SECOND_PHASE(aclnnRmsNorm)

EXPORTED int aclnnIndexSelectGetWorkspaceSize(const aclTensor *self, int64_t dim, const aclTensor *index, aclTensor *out,
                                              uint64_t *workspace, aclOpExecutor **executor) {
    FirstPhase phase("aclnnIndexSelectGetWorkspaceSize", workspace, executor);
    Shaped a = phase.in(self), at = phase.in(index), to = phase.in(out);
    std::vector<int64_t> wanted = a.dims;
    wanted[0] = at.elements();
    phase.want(dim == 0 && at.type == kI32 && at.dims.size() == 1, "numbers along the outermost dimension");
    phase.want(a.type == to.type && to.dims == wanted, "an output of as many slices");
    return phase.done(128, [=](Device &device) {
        Elements all, numbers, chosen;
        if (!load(device, a, all) || !load(device, at, numbers)) return 0;
        size_t slice = all.size() / a.dims[0];
        for (double number : numbers) {
            if (number < 0 || number >= a.dims[0]) return 0;
            chosen.insert(chosen.end(), all.begin() + size_t(number) * slice, all.begin() + (size_t(number) + 1) * slice);
        }
        return int(store(device, to, chosen));
    });
}
SECOND_PHASE(aclnnIndexSelect)

EXPORTED int aclnnInplaceIndexCopyGetWorkspaceSize(aclTensor *self, int64_t dim, const aclTensor *index,
                                                   const aclTensor *source, uint64_t *workspace, aclOpExecutor **executor) {
    FirstPhase phase("aclnnInplaceIndexCopyGetWorkspaceSize", workspace, executor);
    Shaped to = phase.in(self), at = phase.in(index), from = phase.in(source);
    std::vector<int64_t> wanted = to.dims;
    wanted[0] = at.elements();
    phase.want(dim == 0 && at.type == kI32 && at.dims.size() == 1, "numbers along the outermost dimension");
    phase.want(from.type == to.type && from.dims == wanted, "a source of as many slices");
    return phase.done(128, [=](Device &device) {
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
SECOND_PHASE(aclnnInplaceIndexCopy)

EXPORTED int aclnnMatmulGetWorkspaceSize(const aclTensor *self, const aclTensor *other, aclTensor *out, int8_t kind,
                                         uint64_t *workspace, aclOpExecutor **executor) {
    return product("aclnnMatmulGetWorkspaceSize", self, other, out, kind, 2, workspace, executor);
}
SECOND_PHASE(aclnnMatmul)
EXPORTED int aclnnBatchMatMulGetWorkspaceSize(const aclTensor *self, const aclTensor *other, aclTensor *out, int8_t kind,
                                              uint64_t *workspace, aclOpExecutor **executor) {
    return product("aclnnBatchMatMulGetWorkspaceSize", self, other, out, kind, 3, workspace, executor);
}
SECOND_PHASE(aclnnBatchMatMul)
