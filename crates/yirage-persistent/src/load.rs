//! A saved kernel made again: what differs from what it was made of and for is refused.

use crate::builder::KernelBuilder;
use crate::config::KernelConfig;
use crate::elements::KernelDType;
use crate::error::PersistentError;
use crate::kernel::{KernelModel, PersistentKernel, model};
use crate::meta::MetaTensors;
use crate::notice::KernelNotice;
use crate::saved::{FILE, SavedKernel, SavedWeight, here};
use crate::tensor::KernelTensor;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use yirage_engine::GraphModel;
use yirage_hal::Device;
use yirage_ir::{Dim, text};
use yirage_model::arch::StepGraph;

impl PersistentKernel {
    /// A kernel that was saved, with its weights by the names of the tensors that were attached: no layer is recorded again,
    /// and plans that lie there are proved, not compiled. `skip_validation` takes a kernel that was made of or for something
    /// else, as far as it can run: each difference is then a notice.
    ///
    /// # Errors
    /// [`PersistentError::Mismatch`] for another version, device, layout of weights, option or shape;
    /// [`PersistentError::Damaged`] and [`PersistentError::Seal`] for a file that is not whole; and as a compilation.
    pub fn load(
        folder: &Path,
        config: KernelConfig,
        meta: MetaTensors,
        tensors: &HashMap<String, KernelTensor>,
        device: Arc<dyn Device>,
        skip_validation: bool,
    ) -> Result<PersistentKernel, PersistentError> {
        // The builder checks options against the metadata.
        let KernelBuilder { declared, mut notices, .. } = KernelBuilder::new(config, meta)?;
        let path = folder.join(FILE);
        let saved = SavedKernel::read(&path)?;
        let damaged = |why: String| PersistentError::Damaged { path: path.clone(), why };
        let graph = text::parse(&saved.graph).map_err(|e| damaged(e.to_string()))?;
        yirage_ir::verify(&graph).map_err(|e| damaged(e.to_string()))?;
        let mut differ = |field: &str, found: &str, wanted: &str| {
            if found == wanted {
                return Ok(());
            }
            let (field, found, wanted) = (field.to_owned(), found.to_owned(), wanted.to_owned());
            let error = PersistentError::Mismatch { path: path.clone(), field, found, wanted };
            if !skip_validation {
                return Err(error);
            }
            notices.tell(KernelNotice::NotValidated(error.to_string()));
            Ok(())
        };
        for (name, wanted) in here(&declared.config, &graph, &*device)? {
            let found = saved.words(&name).next().ok_or_else(|| damaged(format!("it has no line `{name}`")))?;
            differ(&name, found, &wanted)?;
        }
        let mut weights = HashMap::new();
        for SavedWeight { origin, elements, dims } in &saved.weights {
            let missing = || PersistentError::Tensor {
                name: origin.tensor.clone(),
                why: "the kernel reads it, and it is not given".into(),
            };
            let tensor = tensors.get(&origin.tensor).ok_or_else(missing)?;
            tensor.check(&origin.tensor)?;
            let shape = |elements: &str, dims: &[u32]| format!("{elements} {dims:?}");
            let (found, given) = (shape(elements, dims), shape(&tensor.elements.to_string(), &tensor.dims));
            differ(&format!("weight {}", origin.tensor), &found, &given)?;
            if matches!(tensor.elements, KernelDType::Int32 | KernelDType::Int64) {
                return Err(PersistentError::Tensor {
                    name: origin.tensor.clone(),
                    why: "a weight is of floats".into(),
                });
            }
            let scales = match &origin.scales {
                None => None,
                Some(name) => {
                    let why = "the kernel reads it, and it is not given".into();
                    let missing = || PersistentError::Tensor { name: name.clone(), why };
                    let given = tensors.get(name).ok_or_else(missing)?;
                    given.check(name)?;
                    Some((name.as_str(), given))
                }
            };
            weights.insert(origin.name.clone(), origin.part.of(&origin.tensor, tensor, scales)?.bytes);
        }
        let groups = saved.groups().ok_or_else(|| damaged("a line `group` has two or three numbers".into()))?;
        let kv_cache_group =
            saved.kv_cache_groups().ok_or_else(|| damaged("a line `kv_cache` has a number and a name".into()))?;
        let vocabulary = match graph.outputs.first().and_then(|&id| graph.ty(id).shape.last()) {
            Some(Dim::Const(n)) => *n,
            _ => return Err(damaged("its graph gives no logits".into())),
        };
        let step = StepGraph { graph, groups, kv_cache_group };
        let given = GraphModel { model: model(step, vocabulary, &declared.config), weights };
        let saved = saved.with_sampling(&declared.config.sampling);
        PersistentKernel::start(declared, notices, KernelModel { model: given, saved }, device, Some(folder))
    }
}
