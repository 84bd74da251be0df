package gatehttp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

func TestDecisionIsParsed(t *testing.T) {
	d, err := parseDecision([]byte(` {"verdict":"approve","option_id":"o","reason":"ok ü","edited_args":{"a" : 1.10},` +
		`"scope":"session","args_sha256":"ab"} `))
	require.NoError(t, err)
	require.Equal(t, topics.GateDecision{
		Verdict: "approve", OptionID: "o", Reason: "ok ü", EditedArgs: topics.Raw(`{"a" : 1.10}`), Scope: "session", ArgsSHA256: "ab",
	}, d)
	d, err = parseDecision([]byte(`{"verdict":"answer","answer":"a","edited_args":null,"reason":null}`))
	require.NoError(t, err)
	require.Equal(t, topics.GateDecision{Verdict: "answer", Answer: topics.Raw(`"a"`)}, d)
}

func TestBodyThatIsNoDecisionIsRefused(t *testing.T) {
	for _, body := range []string{
		``, ` `, `null`, `[]`, `"approve"`, `{`, `{"verdict":"approve"`, `{"verdict":"approve"} {}`, `{"verdict":"deny","verdict":"approve"}`,
		`{"verdict":true}`, `{"verdict":"approve","edited-args":{}}`, `{"verdict":"approve","by":"boss"}`, `{"verdict":"approve","gate_id":"x"}`,
		`{"verdict":"approve","cause":"deadline"}`, `{"verdict":"approve","reason":{}}`, "{\"verdict\":\"\xff\"}",
		`{"verdict":"approve","edited_args":{"a":1,"a":2}}`,
		`{"verdict":"approve","edited_args":` + strings.Repeat("[", 999) + strings.Repeat("]", 999) + `}`,
	} {
		_, err := parseDecision([]byte(body))
		require.Error(t, err, body)
		require.NotContains(t, err.Error(), "boss")
	}
}

func TestVerdictsOfTheGroupAreNotForPeople(t *testing.T) {
	for _, v := range []topics.GateVerdict{"", "edit", "close", "revoke", "Approve"} {
		require.Error(t, checkKnown(topics.GateDecision{Verdict: v}), v)
	}
	require.Error(t, checkKnown(topics.GateDecision{Verdict: "deny", Scope: "all"}))
	require.NoError(t, checkKnown(topics.GateDecision{Verdict: "deny", Scope: "once"}))
}

func FuzzDecision(f *testing.F) {
	for _, seed := range []string{
		`{"verdict":"approve","edited_args":{"a":1.10},"scope":"agent","args_sha256":"ab"}`, `{"verdict":"answer","answer":"\ud83d"}`,
		`{"verdict":"deny","reason":"\u0000"}`, `{"verdict":"deny","verdict":"approve"}`, `[[[[`, `{"answer":null}`,
	} {
		f.Add([]byte(seed))
	}
	catalog, err := topics.For("pilot")
	require.NoError(f, err)
	codec := catalog.GateDecisions.Codec()
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := parseDecision(body)
		if err != nil || checkKnown(d) != nil {
			return
		}
		d.GateID, d.SessionID, d.DecisionID, d.By = "g", "s", "d", "mira"
		raw, err := codec.Marshal(d)
		require.NoError(t, err)
		back := codec.Unmarshal(raw)
		require.NoError(t, back.Err, string(raw))
		require.Equal(t, d, back.Value, "the group reads what the door has checked")
	})
}

func TestPathsAreThoseOfTheDocumentation(t *testing.T) {
	routes := (&Handler{}).allRoutes()
	for path, want := range map[string]struct {
		method string
		rights auth.Rights
		id     string
	}{
		"/api/gates":                   {http.MethodGet, auth.Read, ""},
		"/api/gates/a1":                {http.MethodGet, auth.Read, "a1"},
		"/api/gates/a%2Fb":             {http.MethodGet, auth.Read, "a/b"},
		"/api/gates/a1/decision":       {http.MethodPost, auth.Answer, "a1"},
		"/api/gates/grants":            {http.MethodGet, auth.Control, ""},
		"/api/gates/grants/a1":         {http.MethodDelete, auth.Control, "a1"},
		"/api/gates/grants/decision":   {http.MethodDelete, auth.Control, "decision"},
		"/api/gates/a%2Fdecision":      {http.MethodGet, auth.Read, "a/decision"},
		"/api/gates/grants%2Fa":        {http.MethodGet, auth.Read, "grants/a"},
		"/api/gates/decision":          {http.MethodGet, auth.Read, "decision"},
		"/api/gates/%64ecision":        {http.MethodGet, auth.Read, "decision"},
		"/api/gates/decision/decision": {http.MethodPost, auth.Answer, "decision"},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			rt, parts, ok := entrance.Find(routes, GatesPath, method, path)
			require.True(t, ok, path)
			require.Equal(t, want.id, strings.Join(parts, ""), path)
			if method != want.method {
				require.Nil(t, rt.Serve, path)
				continue
			}
			require.Equal(t, want.rights.String(), rt.Rights.String(), path)
		}
	}
	for _, path := range []string{
		"", "/", "/api", "/api/gates/", "/api/gatesx", "/api/gates//decision", "/api/gates/a/", "/api/gates/a/decision/", "/api/gates/a/b",
		"/api/gates/%zz", "/x/api/gates", "/api/gates/grants/a/b", "/api/gates/a/grants",
	} {
		_, _, ok := entrance.Find(routes, GatesPath, http.MethodGet, path)
		require.False(t, ok, path)
	}
}
