package delegationhttp

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/topics"
)

func TestDelegationIsOpenThenHasItsResultInFull(t *testing.T) {
	f := newField(t)
	d := f.door(Config{})
	require.Equal(t, http.StatusNotFound, d.get("/api/delegations/call_1", "").status)
	f.write("s1", "call_1", topics.DelegationOpen)
	open := d.get("/api/delegations/call_1", "").delegation(t)
	require.Equal(t, Delegation{
		CallbackID: "call_1", SessionID: "s1", Agent: f.agent, Target: "research", Status: topics.DelegationOpen, Depth: 1, Channel: "slack",
		StartedAt: isoOf(began), DeadlineAt: isoOf(began + 600_000),
	}, open)

	text := strings.Repeat("ü", 300<<10)
	f.write("s1", "call_1", topics.DelegationCompleted, result(text))
	ended := d.get("/api/delegations/call_1", "").delegation(t)
	require.Equal(t, topics.DelegationCompleted, ended.Status)
	require.Equal(t, text, *ended.Result)
	require.Equal(t, isoOf(began+1000), ended.EndedAt)

	// After a crash, the group may write records again. The first end counts.
	f.write("s1", "call_1", topics.DelegationOpen)
	f.write("s1", "call_1", topics.DelegationTimedOut, func(d *topics.Delegation) { d.Error = "late" })
	f.write("s1", "b", topics.DelegationFailed, func(d *topics.Delegation) { d.Error, d.Code = "The model is down.", "think_failed" })
	failed := d.get("/api/delegations/b", "").delegation(t)
	require.Equal(t, "The model is down.", failed.Error)
	require.Equal(t, "think_failed", failed.Code)
	require.Nil(t, failed.Result)
	again := d.get("/api/delegations/call_1", "")
	require.Equal(t, ended, again.delegation(t))
	require.Equal(t, "no-store", again.header.Get("Cache-Control"))

	// Models use IDs again.
	f.write("s1", "call_1", topics.DelegationOpen, func(d *topics.Delegation) { d.StartedMS++ })
	f.write("s1", "last", topics.DelegationOpen)
	d.get("/api/delegations/last", "").delegation(t)
	require.Equal(t, topics.DelegationOpen, d.get("/api/delegations/call_1", "").delegation(t).Status)
	f.write("s1", "empty", topics.DelegationCompleted)
	require.Contains(t, d.get("/api/delegations/empty", "").body, `"result":""`)
}

func TestDelegationsOfASessionAreListed(t *testing.T) {
	f := newField(t)
	for i := range 5 {
		f.write("s1", fmt.Sprint("c", i), topics.DelegationOpen, func(d *topics.Delegation) { d.StartedMS += int64(i) })
	}
	f.write("s1", "c1", topics.DelegationCompleted, result("a secret"), func(d *topics.Delegation) { d.StartedMS++ })
	f.write("s2", "other", topics.DelegationOpen)
	d := f.door(Config{})
	require.Equal(t, []string{"c4 open", "c3 open", "c2 open", "c1 completed", "c0 open"}, d.get("/api/delegations?session_id=s1", "").listed(t))
	require.NotContains(t, d.get("/api/delegations?session_id=s1", "").body, "a secret")
	require.Equal(t, []string{"c4 open", "c3 open"}, d.get("/api/delegations?session_id=s1&limit=2", "").listed(t))
	require.Equal(t, `{"delegations":[]}`, d.get("/api/delegations?session_id=none", "").body)
	for _, path := range []string{"/api/delegations", "/api/delegations?session_id=s1&limit=0", "/api/delegations?session_id=s1&limit=x", "/api/delegations?session_id=%0a"} {
		require.Equal(t, http.StatusBadRequest, d.get(path, "").status, path)
	}
}

func TestCallersSeeTheirSessionsOnly(t *testing.T) {
	f := newField(t)
	d := f.door(Config{Door: auth.Door{Authenticate: callers}})
	f.write("mira:1", "call_1", topics.DelegationCompleted, result("for mira"))
	f.write("otto:1", "call_1", topics.DelegationCompleted, result("for otto"))
	f.write("otto:1", "call_2", topics.DelegationOpen)
	f.write("otto:2", "call_2", topics.DelegationOpen)
	const mira, otto = "mira read {user}:*", "otto read {user}:*"
	require.Equal(t, http.StatusUnauthorized, d.get("/api/delegations/call_1", "").status)
	require.Equal(t, http.StatusForbidden, d.get("/api/delegations/call_1", "mira write,answer,control *").status)
	require.Equal(t, "for mira", *d.get("/api/delegations/call_1", mira).delegation(t).Result)
	require.Equal(t, "for otto", *d.get("/api/delegations/call_1", otto).delegation(t).Result)
	require.Equal(t, http.StatusConflict, d.get("/api/delegations/call_2", otto).status, "two sessions have it")
	require.Equal(t, "otto:2", d.get("/api/delegations/call_2?session_id=otto:2", otto).delegation(t).SessionID)

	// What others have looks as if it did not exist.
	unknown := d.get("/api/delegations/none", mira)
	for _, path := range []string{"/api/delegations/call_2", "/api/delegations/call_1?session_id=otto:1", "/api/delegations?session_id=otto:1", "/api/delegations?session_id=otto:404"} {
		foreign := d.get(path, mira)
		require.Equal(t, http.StatusNotFound, foreign.status, path)
		require.Equal(t, unknown.body, foreign.body, path)
	}
}

func TestHostileRequestsAreRefused(t *testing.T) {
	f := newField(t)
	d := f.door(Config{})
	for path, want := range map[string]int{
		"/api/delegations/" + strings.Repeat("x", maxID+1): 404,
		"/api/delegations/": 404, "/api/delegations/a/b": 404, "/api/delegationsx": 404, "/api/delegations/%ff": 404,
		"/api/delegations?session_id=" + strings.Repeat("x", 9000): 414,
	} {
		require.Equal(t, want, d.get(path, "").status, path)
	}
	require.Equal(t, http.StatusMethodNotAllowed, d.do(http.MethodPost, "/api/delegations/a", "").status)
	require.Equal(t, http.StatusNoContent, d.do(http.MethodOptions, "/api/delegations/a", "").status)
	f.write("s1", "a/b ü~1", topics.DelegationOpen)
	require.Equal(t, "a/b ü~1", d.get("/api/delegations/a%2Fb%20%C3%BC~1", "").delegation(t).CallbackID)
}

func TestRestartedDoorReadsTheTopicAgain(t *testing.T) {
	f := newField(t)
	f.write("s1", "a", topics.DelegationOpen)
	f.write("s1", "a", topics.DelegationCompleted, result("42 boats"))
	first := f.door(Config{})
	want := first.get("/api/delegations/a", "")
	require.Equal(t, "42 boats", *want.delegation(t).Result)
	first.stop()

	closed := f.closedDoor(Config{}).get("/api/delegations/a", "")
	require.Equal(t, http.StatusServiceUnavailable, closed.status)
	require.NotEmpty(t, closed.header.Get("Retry-After"))
	require.Equal(t, want.body, f.door(Config{}).get("/api/delegations/a", "").body)
}

func TestDelegationsAreForgottenAfterTheLookback(t *testing.T) {
	f := newField(t)
	c := clock.NewFake(time.Now())
	d := f.door(Config{Door: auth.Door{Clock: c}, Lookback: time.Hour})
	f.write("s1", "a", topics.DelegationCompleted, result("x"))
	d.get("/api/delegations/a", "").delegation(t)
	c.Advance(time.Hour)
	require.Equal(t, http.StatusNotFound, d.get("/api/delegations/a", "").status)
	require.Zero(t, d.index.Len())
}

func TestRecordsThatCannotBeReadAreSkipped(t *testing.T) {
	f := newField(t)
	d := f.door(Config{})
	topic := f.catalog.DelegationStatus.Name()
	for _, r := range []processors.Outbound{
		{Topic: topic, Key: "s1", Value: []byte(`{`)},
		{Topic: topic, Key: "s1"},
		{Topic: topic, Key: "s2", Value: []byte(`{"session_id":"s1","callback_id":"a","status":"open"}`)},
	} {
		require.NoError(t, f.to.Publish(t.Context(), r))
	}
	require.Equal(t, http.StatusNotFound, d.get("/api/delegations/a", "").status, "under the key of another session")
	f.write("s1", "b", topics.DelegationOpen)
	d.get("/api/delegations/b", "").delegation(t)
	require.Equal(t, 1, d.index.Len())
}

func TestConfigurationIsChecked(t *testing.T) {
	_, err := NewIndex(" ", Config{})
	require.ErrorIs(t, err, ErrConfig)
	index, err := NewIndex("front", Config{})
	require.NoError(t, err)
	for name, c := range map[string]Config{
		"DelegationLimit": {DelegationLimit: -1}, "Lookback": {Lookback: time.Millisecond}, "Concurrency": {Door: auth.Door{Concurrency: -1}},
	} {
		_, err := NewIndex("front", c)
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, ": "+name+" ")
	}
	_, err = New(nil, Config{})
	require.ErrorIs(t, err, ErrConfig)
	_, err = New(index, Config{Door: auth.Door{Origins: []string{"no origin"}}})
	require.ErrorIs(t, err, ErrConfig)
}
