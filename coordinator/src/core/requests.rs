//! Requests of clients to the core: campaigns, jobs, findings, explorations.

use super::Core;
use crate::clock::unix_ms;
use crate::job::{Job, JobKind, Reply, Whom};
use crate::lease::Kind;
use crate::run::{CLASS_PREFIX, QUARANTINED, REFUTED};
use crate::states::States;
use crate::stored::FittingCampaign;
use crate::{CAMPAIGNS_MAX, CLIENT_JOBS_MAX, Error, aside, digest_words, intake, v1};
use moire_corpus::{
    Campaign, CampaignLimits, CampaignState, Counters, Finding, FindingId, Hash, HashError, Mark, ModelRef,
    Retest, Snapshot, StoreError, Write,
};
use std::collections::BTreeSet;
use tokio::sync::oneshot;
use tonic::Status;

/// Number of bytes of records after which a page ends.
const PAGE_BYTES: usize = 4 << 20;

/// A finding of the store; one that cannot be read is said in the log, and left out.
pub(crate) fn readable(finding: Result<Finding, StoreError>) -> Result<Option<Finding>, StoreError> {
    match finding {
        Err(error) if error.is_about_content() => {
            tracing::error!(%error, "a finding is left out");
            Ok(None)
        }
        read => read.map(Some),
    }
}

/// The record of a finding that clients get.
pub(crate) fn record(finding: &Finding) -> Result<v1::FindingRecord, Status> {
    let json = serde_json::to_string(finding).map_err(|e| Status::internal(e.to_string()))?;
    Ok(v1::FindingRecord { id: finding.id.to_string(), json })
}

impl Core {
    /// Creates a campaign. With `resume`, an existing one of the same name, seed and profile is continued instead.
    pub(crate) fn create(
        &mut self,
        spec: v1::CampaignSpec,
        resume: bool,
    ) -> Result<v1::CampaignStatus, Error> {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if spec.name.is_empty() || spec.name.len() > 100 || !spec.name.chars().all(legal) {
            let text = "a campaign's name has 1 to 100 letters, digits, '.', '_' or '-'";
            return Err(Status::invalid_argument(text).into());
        }
        intake::spec(&spec).map_err(Status::invalid_argument)?;
        let programs = (spec.programs > 0).then_some(spec.programs);
        if let Some(run) = self.triage.runs.get_mut(&spec.name) {
            let same = run.campaign.seed == spec.seed && run.campaign.profile == spec.profile;
            if !resume || !same {
                return Err(Status::already_exists(format!("there is a campaign {}", spec.name)).into());
            }
            let mut campaign = run.campaign.clone();
            if campaign.state == CampaignState::Running && campaign.limits.programs == programs {
                return Ok(self.status(&spec.name)?);
            }
            let last =
                || Status::failed_precondition(format!("campaign {} was started too often", spec.name));
            campaign.limits.programs = programs;
            campaign.state = CampaignState::Running;
            campaign.epoch = campaign.epoch.checked_add(1).ok_or_else(last)?;
            return self.admit_campaign(campaign);
        }
        self.not_aside(&spec.name)?;
        if self.triage.runs.len() >= CAMPAIGNS_MAX {
            let text = format!("there are {CAMPAIGNS_MAX} campaigns, which is the limit; use another store");
            return Err(Status::resource_exhausted(text).into());
        }
        let model = |name: &String| ModelRef { name: name.clone(), ..ModelRef::default() };
        let campaign = Campaign {
            name: spec.name,
            seed: spec.seed,
            generator: spec.fingerprint,
            profile: spec.profile,
            models: spec.models.iter().map(model).collect(),
            oracles: spec.oracles,
            needs: spec.needs,
            canaries: spec.canaries,
            limits: CampaignLimits { programs, findings: None },
            priority: spec.priority,
            epoch: 1,
            created_ms: unix_ms(),
            ..Campaign::default()
        };
        self.admit_campaign(campaign)
    }

    fn admit_campaign(&mut self, campaign: Campaign) -> Result<v1::CampaignStatus, Error> {
        let campaign = FittingCampaign::try_from(campaign).map_err(Status::invalid_argument)?;
        let name = campaign.campaign().name.clone();
        self.base.store.commit([Write::Campaign(Box::new(campaign.campaign().clone()))])?;
        self.adopt(campaign.into_inner())?;
        Ok(self.status(&name)?)
    }

    /// Refuses what is asked about a campaign that is set aside.
    fn not_aside(&self, name: &str) -> Result<(), Status> {
        let why = self.base.aside.why(&aside::campaign(name));
        why.map_or(Ok(()), |why| {
            let text = format!(
                "campaign {name} is set aside: {why}; stop the coordinator and run `moire store fsck`"
            );
            Err(Status::failed_precondition(text))
        })
    }

    pub(crate) fn status(&mut self, name: &str) -> Result<v1::CampaignStatus, Status> {
        self.not_aside(name)?;
        let run =
            self.triage.runs.get_mut(name).ok_or_else(|| Status::not_found(format!("no campaign {name}")))?;
        if !run.open() && run.digest.is_none() {
            run.digest = Some(self.base.store.digest(name).map_err(Error::from)?);
        }
        let (campaign, counters) = (&run.campaign, &run.progress.counters);
        let reasons = counters.abstentions.iter().filter(|(k, _)| !k.starts_with(CLASS_PREFIX));
        let abstentions: std::collections::BTreeMap<_, _> = reasons.map(|(k, v)| (k.clone(), *v)).collect();
        let seen = self.base.store.sightings(name).map_err(Error::from)?;
        let findings = seen.chunk_by(|a, b| a.0 == b.0).count() as u64;
        let phase = match campaign.state {
            CampaignState::Running => v1::CampaignPhase::Running,
            CampaignState::Paused => v1::CampaignPhase::Paused,
            CampaignState::Cancelled => v1::CampaignPhase::Cancelled,
            CampaignState::Done => v1::CampaignPhase::Done,
        };
        let spec = v1::CampaignSpec {
            name: campaign.name.clone(),
            seed: campaign.seed,
            profile: campaign.profile.clone(),
            oracles: campaign.oracles.clone(),
            models: campaign.models.iter().map(|m| m.name.clone()).collect(),
            programs: campaign.limits.programs.unwrap_or(0),
            priority: campaign.priority,
            canaries: campaign.canaries,
            needs: campaign.needs.clone(),
            fingerprint: campaign.generator.clone(),
        };
        let quarantined = abstentions.get(QUARANTINED).copied().unwrap_or(0);
        Ok(v1::CampaignStatus {
            spec: Some(spec),
            phase: phase.into(),
            programs: run.progress.done(),
            executions: counters.executions,
            discrepancies: counters.discrepancies,
            findings,
            quarantined,
            refuted: abstentions.get(REFUTED).copied().unwrap_or(0),
            abstentions,
            canaries_planted: counters.canaries_planted,
            canaries_caught: counters.canaries_caught,
            digest: run
                .digest
                .filter(|_| !run.open())
                .map(|d| digest_words(d, quarantined))
                .unwrap_or_default(),
            canaries: counters.canaries.clone(),
            mutants: counters.mutants.clone(),
            unverified: if run.open() { run.claims_open() as u64 } else { 0 },
            able: u32::try_from(self.base.fleet.able_to_work(name)).unwrap_or(u32::MAX),
        })
    }

    pub(crate) fn set_state(
        &mut self,
        name: &str,
        phase: v1::CampaignPhase,
    ) -> Result<v1::CampaignStatus, Error> {
        let now = self.base.now();
        let run =
            self.triage.runs.get_mut(name).ok_or_else(|| Status::not_found(format!("no campaign {name}")))?;
        if !run.open() {
            return Err(Status::failed_precondition(format!("campaign {name} has ended")).into());
        }
        run.drains = false;
        run.campaign.state = match phase {
            v1::CampaignPhase::Running => CampaignState::Running,
            v1::CampaignPhase::Paused => CampaignState::Paused,
            v1::CampaignPhase::Cancelled => CampaignState::Cancelled,
            _ => {
                return Err(
                    Status::invalid_argument("a campaign is set to running, paused or cancelled").into()
                );
            }
        };
        let campaign = run.campaign.clone();
        self.base.store.commit(vec![Write::Campaign(Box::new(campaign))])?;
        match phase {
            v1::CampaignPhase::Cancelled => {
                self.base.fleet.drop_campaign(name, now);
                self.triage.drop_jobs(name);
            }
            _ => self.base.fleet.run_campaign(name, phase == v1::CampaignPhase::Running),
        }
        Ok(self.status(name)?)
    }

    /// Pauses a campaign but for its claims: they are run again and reduced, and items before them are run.
    pub(crate) fn drain(&mut self, name: &str) -> Result<v1::CampaignStatus, Error> {
        self.set_state(name, v1::CampaignPhase::Paused)?;
        if let Some(run) = self.triage.runs.get_mut(name) {
            run.drains = true;
            self.base.fleet.limit(name, run.limit());
            self.base.fleet.run_campaign(name, true);
        }
        Ok(self.status(name)?)
    }

    /// Queues a job of a client; the answer goes to `reply`.
    pub(crate) fn submit(
        &mut self,
        request: v1::SubmitJobRequest,
        whom: Whom,
        reply: oneshot::Sender<Option<Reply>>,
    ) -> Result<(), Status> {
        use v1::submit_job_request::Job as Asked;
        let (kind, turn, claim) = match request.job {
            Some(Asked::Verify(claim)) => (JobKind::Verify, Kind::Verify, claim),
            Some(Asked::Minimise(m)) => (JobKind::Minimise, Kind::Minimise, m.claim.unwrap_or_default()),
            Some(Asked::Replay(r)) => {
                (JobKind::Replay, Kind::Replay, v1::Claim { program: r.program, ..v1::Claim::default() })
            }
            None => return Err(Status::invalid_argument("a job is verify, minimise or replay")),
        };
        let mut claim = claim;
        if kind != JobKind::Replay {
            intake::claim(&claim).map_err(Status::invalid_argument)?;
        }
        if !intake::fit(&mut claim) {
            return Err(Status::invalid_argument("the program is too large"));
        }
        intake::plan(request.plan.as_ref()).map_err(Status::invalid_argument)?;
        self.triage.drop_unwanted(&mut self.base);
        if self.base.fleet.queued() >= CLIENT_JOBS_MAX {
            return Err(Status::resource_exhausted("too many jobs wait; try again later"));
        }
        let mut job = Job::new(kind, claim);
        job.plan = Some(request.plan.unwrap_or_default());
        job.reply = Some(reply);
        if kind == JobKind::Minimise {
            self.triage.reductions.start(&mut self.base, &mut self.triage.jobs, job);
        } else {
            let id = self.triage.jobs.queue(&mut self.base, job, turn, None);
            self.base.fleet.needs(id, whom.needs);
            let strict = !whom.avoid.is_empty();
            self.base.fleet.avoid(id, whom.avoid, strict);
        }
        Ok(())
    }

    /// Capabilities a campaign needs, such as a device of some class. Running its findings again needs the same.
    pub(crate) fn needs(&self, campaign: &str) -> BTreeSet<String> {
        self.triage
            .runs
            .get(campaign)
            .into_iter()
            .flat_map(|run| run.campaign.needs.iter().cloned())
            .collect()
    }

    /// The finding with this id, or whose id starts with it.
    pub(crate) fn named(&self, id: &str) -> Result<Finding, Error> {
        Ok(self.base.store.named(id)?)
    }

    pub(crate) fn mark(&mut self, request: &v1::MarkFindingRequest) -> Result<v1::FindingRecord, Error> {
        let mark = match request.state.as_str() {
            "suppress" => Mark::Suppress { until_ms: request.until_ms },
            word => word.parse()?,
        };
        let before = self.base.store.named(&request.id)?.state;
        let marked = self.base.store.mark(unix_ms(), &request.id, &mark, &request.who, &request.why)?;
        self.base.states.changed(&marked.id, Some(&before), &marked.state);
        Ok(record(&marked)?)
    }

    /// One page of findings.
    pub(crate) fn list(&self, request: &v1::ListFindingsRequest) -> Result<v1::ListFindingsResponse, Error> {
        let after: Option<FindingId> = match request.after.as_str() {
            "" => None,
            id => Some(id.parse().map_err(|e: HashError| Status::invalid_argument(e.to_string()))?),
        };
        let mut page = v1::ListFindingsResponse::default();
        let mut bytes = 0;
        for finding in self.base.store.findings_behind(after.as_ref()) {
            let Some(finding) = readable(finding)? else { continue };
            if !request.campaign.is_empty() && finding.campaign != request.campaign {
                continue;
            }
            if bytes > PAGE_BYTES {
                page.more = true;
                break;
            }
            let record = record(&finding)?;
            bytes += record.json.len();
            page.findings.push(record);
        }
        Ok(page)
    }

    /// Records the result of running a finding again.
    pub(crate) fn retested(&mut self, id: &FindingId, retest: Retest) -> Result<v1::FindingRecord, Error> {
        let stored = self.base.store.finding(id)?;
        let mut finding = stored.ok_or_else(|| Status::not_found("the finding has gone"))?;
        let before = finding.state.clone();
        finding.retested(retest);
        self.base.store.commit(vec![Write::Finding(Box::new(finding.clone()))])?;
        self.base.states.changed(id, Some(&before), &finding.state);
        Ok(record(&finding)?)
    }

    pub(crate) fn last_snapshot(&self) -> Result<v1::SnapshotRecord, Error> {
        let last = self.base.store.last_snapshot()?;
        let json = last.map(|s| text(&s)).transpose()?.unwrap_or_default();
        Ok(v1::SnapshotRecord { json, now_ms: unix_ms() })
    }

    pub(crate) fn save_snapshot(&mut self, at_ms: u64) -> Result<v1::SnapshotRecord, Error> {
        let mut counters = Counters::default();
        self.triage.runs.values().for_each(|run| counters.add(&run.progress.counters));
        let mut snapshot = Snapshot { at_ms, counters, ..Snapshot::default() };
        for finding in self.base.store.findings() {
            let Some(finding) = readable(finding)? else { continue };
            if finding.first_seen_ms <= at_ms {
                snapshot.add(&finding);
            }
        }
        self.base.store.save_snapshot(&snapshot)?;
        Ok(v1::SnapshotRecord { json: text(&snapshot)?, now_ms: unix_ms() })
    }

    /// Starts an exploration unless it is there already, and returns its id.
    pub(crate) fn explore(&mut self, asked: v1::Exploration) -> Result<Hash, Error> {
        self.spread.explore(&mut self.base, asked)
    }
    /// The progress of an exploration.
    pub(crate) fn explore_status(&mut self, id: &Hash) -> Result<v1::ExploreStatus, Status> {
        self.spread.status(&self.base, id)
    }
    /// Findings by state.
    pub(crate) fn finding_states(&mut self) -> Result<&States, Error> {
        self.base.states.look(&self.base.store)
    }
}

fn text(snapshot: &Snapshot) -> Result<String, Status> {
    serde_json::to_string(snapshot).map_err(|e| Status::internal(e.to_string()))
}
