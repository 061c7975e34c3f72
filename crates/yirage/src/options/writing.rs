//! The options of commands that write model files, and what belongs to them.

use super::spec::{Default, OptionKind, Spec, flag, option, short};
use super::takers::{CONVERT, IMATRIX, OVERWRITE, QUANTIZE, WRITE};
use Default::{Described, Value};
use OptionKind::{Choice, Number, Switch, Text};

/// They stand at the end of help texts and of `yirage config explain`.
pub(super) const WRITING: &[Spec] = &[
    // Importances.
    short(
        'c',
        flag(
            "context",
            option(
                "imatrix-context",
                Number("N"),
                Described("512, or what the model was made for if that is less"),
                IMATRIX,
                "Tokens of a chunk, which the model reads by itself",
            ),
        ),
    ),
    option("chunks", Number("N"), Described("all"), IMATRIX, "Chunks of the text to read, at most"),
    option("process-output", Switch, Value("false"), IMATRIX, "Count the inputs of the matrix of the logits as well"),
    short(
        'o',
        flag(
            "output",
            option(
                "imatrix-output",
                Text("FILE"),
                Described("NAME-imatrix.gguf beside the file"),
                IMATRIX,
                "File to write",
            ),
        ),
    ),
    // Quantising.
    option("mix", Text("MIX"), Value("Q4_K_M"), QUANTIZE, "Formats of the tensors, by the name that files have"),
    short(
        'o',
        flag(
            "output",
            option("quantized", Text("FILE"), Described("NAME-MIX.gguf beside the file"), QUANTIZE, "File to write"),
        ),
    ),
    option(
        "imatrix",
        Text("FILE"),
        Described("none"),
        QUANTIZE,
        "Importances of inputs, as `yirage imatrix` and `llama-imatrix` write them",
    ),
    option(
        "allow-requantize",
        Switch,
        Value("false"),
        QUANTIZE,
        "Take tensors that are quantised already, which loses more than taking floats",
    ),
    option("pure", Switch, Value("false"), QUANTIZE, "Give all quantised tensors the mix's usual format"),
    option("leave-output-tensor", Switch, Value("false"), QUANTIZE, "Leave the matrix of the logits as it is"),
    option(
        "output-tensor-type",
        Text("FORMAT"),
        Described("the mix's"),
        QUANTIZE,
        "Format of the matrix of the logits",
    ),
    option("token-embedding-type", Text("FORMAT"), Described("the mix's"), QUANTIZE, "Format of the token embeddings"),
    short(
        't',
        flag(
            "threads",
            option(
                "quantize-threads",
                Number("N"),
                Described("as many as there are processors"),
                QUANTIZE,
                "Threads that quantise; the file is the same with any number",
            ),
        ),
    ),
    // Converting.
    option(
        "outtype",
        Choice(&["auto", "f32", "f16", "bf16"]),
        Value("auto"),
        CONVERT,
        "Float type of matrices; auto: the model's own of 16 bits, else f16",
    ),
    short(
        'o',
        flag(
            "output",
            option("outfile", Text("FILE"), Described("NAME-F16.gguf beside the folder"), CONVERT, "File to write"),
        ),
    ),
    option("model-name", Text("NAME"), Described("the folder's"), CONVERT, "Name of the model, within the file"),
    // Files that are written.
    option("force", Switch, Value("false"), OVERWRITE, "Overwrite a file that is there"),
    option("dry-run", Switch, Value("false"), WRITE, "Show formats and sizes, and write nothing"),
];
