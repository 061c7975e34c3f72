// Logits of every position of one sequence by llama.cpp, for llama_logits.py.
// usage: llama_logits MODEL.gguf VOCABULARY ID...      one line of space-separated logits a position
//
// The tiny models have no tokenizer: `no_vocab` is given as an override, with the vocabulary's size, which llama.cpp
// reads from the architecture's own key.
#include "ggml-backend.h"
#include "gguf.h"
#include "llama.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

static std::string architecture(const char *path) {
    gguf_init_params init = {true, nullptr};
    gguf_context *file = gguf_init_from_file(path, init);
    if (!file) return "";
    int64_t key = gguf_find_key(file, "general.architecture");
    std::string name = key < 0 ? "" : gguf_get_val_str(file, key);
    gguf_free(file);
    return name;
}

int main(int argc, char **argv) {
    if (argc < 4) return fprintf(stderr, "usage: llama_logits MODEL.gguf VOCABULARY ID...\n"), 2;
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    // Processors' own kernels are libraries of their own in some builds.
    ggml_backend_load_all_from_path(LIBRARIES);
    llama_backend_init();

    llama_model_kv_override overrides[3] = {};
    strcpy(overrides[0].key, "tokenizer.ggml.model");
    overrides[0].tag = LLAMA_KV_OVERRIDE_TYPE_STR;
    strcpy(overrides[0].val_str, "no_vocab");
    snprintf(overrides[1].key, sizeof overrides[1].key, "%s.vocab_size", architecture(argv[1]).c_str());
    overrides[1].tag = LLAMA_KV_OVERRIDE_TYPE_INT;
    overrides[1].val_i64 = atoi(argv[2]);

    llama_model_params mp = llama_model_default_params();
    mp.kv_overrides = overrides;
    mp.use_extra_bufts = false;
    llama_model *model = llama_model_load_from_file(argv[1], mp);
    if (!model) return fprintf(stderr, "%s does not load\n", argv[1]), 1;

    llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 256;
    cp.n_batch = cp.n_ubatch = 256;
    cp.n_threads = cp.n_threads_batch = 1;
    cp.type_k = cp.type_v = GGML_TYPE_F32;
    cp.swa_full = true;
    llama_context *context = llama_init_from_model(model, cp);
    if (!context) return fprintf(stderr, "no context\n"), 1;

    int n = argc - 3;
    llama_batch batch = llama_batch_init(n, 0, 1);
    batch.n_tokens = n;
    for (int i = 0; i < n; i++) {
        batch.token[i] = atoi(argv[i + 3]);
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = true;
    }
    if (llama_decode(context, batch) != 0) return fprintf(stderr, "decode failed\n"), 1;
    for (int i = 0; i < n; i++) {
        const float *row = llama_get_logits_ith(context, i);
        for (int v = 0; v < atoi(argv[2]); v++) printf(v ? " %.6g" : "%.6g", row[v]);
        printf("\n");
    }
}
