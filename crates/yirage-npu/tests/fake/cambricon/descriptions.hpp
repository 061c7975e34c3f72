// Handles and descriptions of libcnnl.so.
//
// What was given back is kept and marked, so that whoever uses it later is found.
#pragma once

#include "../elements.hpp"

#include <string>

enum : int { kNotInitialised = 1, kBadParam = 3, kNotSupported = 7 };
// As CNNL numbers elements.
enum : int32_t { kCnnlHalf = 1, kCnnlFloat = 2, kCnnlInt32 = 6, kCnnlBool = 8, kCnnlBFloat16 = 17 };

enum class Kind : uint32_t { handle = 0x6a11, tensor, arithmetic, reduction, product, algorithm, choice };

// Whatever the library gives out begins with this.
struct Description {
    Kind kind;
    bool alive = true;
};
struct Handle : Description {
    int device;
    void *queue = nullptr;
};
struct Tensor : Description, Shaped {
    bool is_set = false;
};
struct Arithmetic : Description {
    int how = -1;
};
struct Reduction : Description {
    int how = -1, axis = -1;
};
struct Product : Description {
    bool by_columns = false, in_float = false;
};
struct Algorithm : Description {
    const Product *of = nullptr;
    uint64_t workspace = 0;
};
struct Choice : Description {
    const Product *of = nullptr;
    uint64_t workspace = 0;
};

// The first thing that is wrong with a call is what it answers.
class Call {
public:
    explicit Call(const char *name);
    // A description that has to be there.
    template <typename T>
    T *in(void *given, Kind kind) {
        auto *found = static_cast<T *>(static_cast<Description *>(given));
        if (!code && (!given || found->kind != kind || !found->alive)) fail("a description that is not there");
        return code ? nullptr : found;
    }
    // The handle that belongs to this thread's device.
    Handle *handle(void *given);
    // A tensor whose memory begins there; only described where there is no address.
    Shaped tensor(void *given, const void *data);
    // One whose elements lie one after the other.
    Shaped dense(void *given, const void *data);
    void want(bool holds, const char *why) {
        if (!code && !holds) fail(why);
    }
    // Something that the library does not do, and says so.
    int refuse() { return code ? code : kBadParam; }
    bool is_right() const { return !code; }
    int answer() const { return code; }
    // Ends a call that asks.
    int says(size_t *where, uint64_t bytes);
    // Ends a call that runs: what is to be done, in memory to work in of at least so many bytes.
    int runs(Handle *handle, void *workspace, size_t bytes, uint64_t wanted, Task task);

private:
    void fail(const char *why) { code = machine().refuse(name, kBadParam, why); }

    const char *name;
    int code;
};
