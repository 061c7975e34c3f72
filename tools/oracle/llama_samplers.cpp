// What llama.cpp's samplers leave of rows of logits, for sampler_cases.py.
// usage: llama_samplers < CASE      one line a row: the selected token or -1, then ID LOGIT of each token that is left
//
// A case is numbers and words with white space between: VOCABULARY ROWS HISTORY STAGES, the tokens of the history, the
// stages with their arguments, the rows. Every stage accepts the history first.
#include "llama.h"
#include "llama-sampler.h"
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

static llama_sampler *read_stage(int vocabulary) {
    std::string name;
    std::cin >> name;
    auto number = [] { float x; std::cin >> x; return x; };
    auto whole = [] { int n; std::cin >> n; return n; };
    if (name == "penalties") {
        float repetition = number(), frequency = number(), presence = number();
        return llama_sampler_init_penalties(vocabulary, 1 << 20, repetition, frequency, presence);
    }
    if (name == "dry") {
        float multiplier = number(), base = number();
        int allowed = whole(), last = whole();
        std::vector<std::vector<llama_token>> breakers(whole());
        for (auto &breaker : breakers) {
            breaker.resize(whole());
            for (auto &token : breaker) token = whole();
        }
        return llama_sampler_init_dry_testing(multiplier, base, allowed, last, breakers);
    }
    if (name == "top_n_sigma") return llama_sampler_init_top_n_sigma(number());
    if (name == "top_k") return llama_sampler_init_top_k(whole());
    if (name == "typ_p") return llama_sampler_init_typical(number(), 0);
    if (name == "top_p") return llama_sampler_init_top_p(number(), 0);
    if (name == "min_p") return llama_sampler_init_min_p(number(), 0);
    if (name == "xtc") {
        float probability = number(), threshold = number();
        return llama_sampler_init_xtc(probability, threshold, 0, 1);
    }
    if (name == "temperature") {
        float temperature = number(), range = number(), exponent = number();
        return llama_sampler_init_temp_ext(temperature, range, exponent);
    }
    if (name == "mirostat") {
        float tau = number(), eta = number();
        return llama_sampler_init_mirostat(vocabulary, 1, tau, eta, 100);
    }
    if (name == "mirostat_v2") {
        float tau = number(), eta = number();
        return llama_sampler_init_mirostat_v2(1, tau, eta);
    }
    fprintf(stderr, "no stage %s\n", name.c_str());
    exit(2);
}

int main() {
    int vocabulary, rows, tokens, count;
    std::cin >> vocabulary >> rows >> tokens >> count;
    std::vector<llama_token> history(tokens);
    for (auto &token : history) std::cin >> token;
    std::vector<llama_sampler *> stages;
    for (int i = 0; i < count; i++) stages.push_back(read_stage(vocabulary));
    for (auto *stage : stages)
        for (auto token : history) llama_sampler_accept(stage, token);
    for (int row = 0; row < rows; row++) {
        std::vector<llama_token_data> data(vocabulary);
        for (int i = 0; i < vocabulary; i++) {
            data[i] = {i, 0.0f, 0.0f};
            std::cin >> data[i].logit;
        }
        llama_token_data_array all = {data.data(), data.size(), -1, false};
        for (auto *stage : stages) llama_sampler_apply(stage, &all);
        printf("%d", all.selected < 0 ? -1 : all.data[all.selected].id);
        for (size_t i = 0; i < all.size; i++) printf(" %d %.9g", all.data[i].id, all.data[i].logit);
        printf("\n");
    }
}
