from __future__ import annotations
import io, json
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from controlplane.adapters.engines.transformers import specs
from controlplane.ports.engines import Task
from tests.functional.api.test_attempts import Reporter
pytestmark = pytest.mark.django_db
WEIRD = [None, True, -1, 0, 10**30, 1.5, -0.0, "", " ", "x"*100000, "路径", [], [1], [[]], {}, {"a": {"b": 1}}, [None], ["x"*1000], {"": ""}, "../..", "2027-13-45", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]

def shoot(client, path, base, out):
    def go(body):
        r = client.post(path, body, format="json")
        if r.status_code >= 500: out.append((path, {k: str(v)[:60] for k, v in body.items()}))
    for k in list(base):
        for w in WEIRD:
            go({**base, k: w})

def test_fuzz(engineer, company):
    engineer.raise_request_exception = False
    out = []
    m, d = company.model.uid, company.dataset.uid
    jobs = {
      "finetune": {"kind":"finetune","name":"x","model_version":m,"dataset_version":d,"output_name":"o","spec":{},"team":company.team.uid,"engine":"transformers","queue":"default","chips":["cpu"],"cards":1,"memory":0,"priority":0,"run_seconds":5, "output_shared": False, "code": None},
      "evaluate": {"kind":"evaluate","name":"x","model_version":m,"dataset_version":d,"spec":{}, "engine":"transformers"},
      "script": {"kind":"script","name":"x","spec":{"argv":["python"]}, "engine":"transformers"},
    }
    for kind, base in jobs.items():
        shoot(engineer, "/api/v1/jobs/check", base, out)
        for f in specs.FIELDS[Task(kind)]:
            for w in WEIRD:
                body = {**base, "spec": {**base["spec"], f.name: w}}
                r = engineer.post("/api/v1/jobs/check", body, format="json")
                if r.status_code >= 500: out.append((kind, f.name, str(w)[:60]))
                elif r.status_code == 200 and r.json()["accepted"]:
                    r = engineer.post("/api/v1/jobs", body, format="json")
                    if r.status_code >= 500: out.append(("SUBMIT", kind, f.name, str(w)[:60]))
                    try:
                        company.schedule(); company.turn_jobs()
                    except Exception as e: out.append(("TURN", kind, f.name, str(w)[:60], repr(e)))
    base = {"name":"dep","model_version":m,"engine":"transformers","spec":{},"chips":["cpu"],"cards":1,"replicas":1,"team":company.team.uid,"queue":"default"}
    shoot(engineer, "/api/v1/deployments", base, out)
    for f in specs.FIELDS[Task.SERVE]:
        for i, w in enumerate(WEIRD):
            r = engineer.post("/api/v1/deployments", {**base, "name": f"d{f.name.replace('_','-')}{i}", "spec": {f.name: w}}, format="json")
            if r.status_code >= 500: out.append(("serve", f.name, str(w)[:60]))
    shoot(engineer, "/api/v1/keys", {"name":"k","routes":None,"requests_per_minute":1,"tokens_per_minute":1,"concurrency":1,"expires_at":None}, out)
    shoot(engineer, "/api/v1/tokens", {"name":"k","expires_at":None}, out)
    shoot(engineer, "/api/v1/model-versions/import", {"name":"k","path":"/x"}, out)
    dep = engineer.post("/api/v1/deployments", {**base, "name":"okdep"}, format="json").json()["uid"]
    shoot(engineer, f"/api/v1/deployments/{dep}/scale", {"replicas": 2}, out)
    shoot(engineer, f"/api/v1/deployments/{dep}/revise", {"model_version": m, "spec": {}, "chips": ["cpu"], "cards": 1}, out)
    for q in ("jobs?text=%ff", "jobs?state=waiting&state=failed", "usage?from=0001-01-01T00:00:00Z", "usage?to=9999-12-31T23:59:59-12:00", "usage/totals?from=0001-01-01T00:00:00%2B14:00", "jobs?cursor=cD0x", "jobs?text=%00", "jobs?text=%ed%a0%80", "claims?queue=%00", "model-versions?job=%00"):
        r = engineer.get("/api/v1/" + q)
        if r.status_code >= 500: out.append(("GET", q))
    for o in sorted(set(map(str, out))): print("BAD", o)
    assert not out

def test_progress(engineer, company):
    job, attempt = company.running()
    rep = Reporter(attempt); rep.client.raise_request_exception = False
    out = []
    for raw in ('{"points":[{"step":1,"loss":1e400}]}', '{"points":[{"step":1,"total_steps":"x"}]}','{"points":[{"step":1,"total_steps":-5}]}','{"points":[{"step":1,"total_steps":[1]}]}','{"points":[{"step":1,"total_steps":1e-320}]}','{"points":[{"checkpoint":1}]}', '{"points":[{"step":1,"":1}]}','{"points":[{"step":1,"total_steps":1e308},{"step":2147483647}]}'):
        r = rep.client.post(rep.address + "/progress", raw, content_type="application/json")
        attempt.refresh_from_db()
        if r.status_code >= 500: out.append((raw, r.status_code))
        for page in ("", "/curve", "/attempts"):
            g = engineer.get(f"/api/v1/jobs/{job.uid}{page}")
            if g.status_code >= 500: out.append((raw, page))
    for raw in ('{"kind":"model","files":[],"metrics":{"x":1e400}}',):
        r = rep.client.put(rep.address + "/manifest", raw, content_type="application/json")
        if r.status_code >= 500: out.append((raw, r.status_code))
    for o in out: print("BAD", o)
    assert not out
