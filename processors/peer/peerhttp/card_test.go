package peerhttp

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/auth"
)

func TestCardDescribesTheInstance(t *testing.T) {
	d := newRig(t, func(c *Config) {
		c.AppVersion, c.AgentNames, c.Agents, c.DefaultAgent = "1.2", map[string]string{"back": "Back office"}, []string{"zoo", "back", "main"}, "main"
	})
	g := d.do("GET", CardPath, "")
	require.Equal(t, 200, g.status)
	require.Equal(t, "application/json; charset=utf-8", g.header.Get("Content-Type"))
	require.Equal(t, "no-store", g.header.Get("Cache-Control"))
	require.Equal(t, `{
  "protocol": "hybridclaw-peer",
  "protocolVersion": "1",
  "instanceId": "a-1",
  "instanceName": "A",
  "appVersion": "1.2",
  "agents": [
    {
      "id": "main",
      "name": null
    },
    {
      "id": "back",
      "name": "Back office"
    },
    {
      "id": "zoo",
      "name": null
    }
  ],
  "capabilities": {
    "delegate": true,
    "streaming": false,
    "idempotent": true,
    "async": true,
    "cancel": true
  }
}`, g.body)
	require.Equal(t, peerwire.Card{
		InstanceID: "a-1", InstanceName: "A", AppVersion: "1.2", DefaultAgent: "main",
		Agents:   []peerwire.Agent{{ID: "main"}, {ID: "back", Name: "Back office"}, {ID: "zoo"}},
		Delegate: true, Idempotent: true, Async: true, Cancel: true,
	}.Body(), []byte(g.body), "the builder and HTTP agree")
}

func TestCardListsAgentsThatMayBeDelegatedTo(t *testing.T) {
	for peers, want := range map[string][]string{
		usual: {"front", "back"}, // a token without a list
		`{"enabled":true,"instanceId":"a-1","inboundTokens":[{"id":"b","token":"T","allowedAgentIds":["back","none"]}]}`: {"back"},
		`{"enabled":true,"instanceId":"a-1"}`:      nil,
		strings.Replace(usual, "true", "false", 1): nil,
	} {
		d := newRig(t)
		d.configure(peers)
		var card struct {
			Agents       []struct{ ID string }
			Capabilities struct{ Delegate bool }
		}
		g := d.do("GET", CardPath, "")
		require.Equal(t, 200, g.status)
		require.NoError(t, json.Unmarshal([]byte(g.body), &card, json.MatchCaseInsensitiveNames(true)))
		var ids []string
		for _, a := range card.Agents {
			ids = append(ids, a.ID)
		}
		require.Equal(t, want, ids, peers)
		require.Equal(t, d.settings.Load().Enabled, card.Capabilities.Delegate)
	}
}

func TestOtherMethodsAndPaths(t *testing.T) {
	d := newRig(t)
	for _, c := range []struct {
		path, allow string
		refused     []string
	}{
		{CardPath, "GET, OPTIONS", []string{"HEAD", "POST", "PUT", "DELETE", "CONNECTX"}},
		{DelegatePath, "POST, OPTIONS", []string{"GET", "HEAD", "PUT", "DELETE"}},
		{TasksPath + "t", "GET, DELETE, OPTIONS", []string{"POST", "HEAD", "PATCH"}},
		{ProxyPath, "POST, OPTIONS", []string{"GET", "HEAD", "PUT", "DELETE"}},
	} {
		for _, method := range c.refused {
			g := d.do(method, c.path, "")
			require.Equal(t, []any{405, c.allow}, []any{g.status, g.header.Get("Allow")}, "%s %s", method, c.path)
			if method != "HEAD" {
				require.Equal(t, "method_not_allowed", g.fault(t).Code)
			}
		}
		require.Equal(t, 204, d.do("OPTIONS", c.path, "").status)
	}
	for _, path := range []string{
		"/", "/api/peers", "/api/peer", "/api/peer/", DelegatePath + "/", DelegatePath + "x", "/api/peer/tasks", TasksPath, TasksPath + "a/b",
		TasksPath + "%ff", TasksPath + strings.Repeat("x", peerwire.MaxID+1), ProxyPath + "/x",
	} {
		g := d.do("GET", path, "", t2)
		require.Equal(t, []any{404, "not_found", "Not Found"}, []any{g.status, g.fault(t).Code, g.fault(t).Error}, path)
	}
	require.Empty(t, d.group.kinds())
}

func TestPagesOfNamedOriginsMayUseTheDoor(t *testing.T) {
	d := newRig(t, func(c *Config) {
		c.Origins, c.Headers = []string{"https://app.example"}, []string{"Authorization", "Prefer"}
	})
	g := d.do("OPTIONS", ProxyPath, "", "Origin: https://app.example")
	require.Equal(t, []any{204, "https://app.example", "Content-Type, Authorization, Prefer", "Location, Preference-Applied, Retry-After"}, []any{
		g.status, g.header.Get("Access-Control-Allow-Origin"), g.header.Get("Access-Control-Allow-Headers"),
		g.header.Get("Access-Control-Expose-Headers"),
	})
	require.Empty(t, d.do("GET", CardPath, "", "Origin: https://evil.example").header.Get("Access-Control-Allow-Origin"))
}

func TestBadConfigurationIsRefused(t *testing.T) {
	replies, err := NewReplies("front", Config{})
	require.NoError(t, err)
	_, err = New(nil, nil, nil, Config{})
	require.ErrorIs(t, err, ErrConfig)
	for _, text := range []string{"replies is nil", "publisher is nil", "settings is nil"} {
		require.ErrorContains(t, err, text)
	}
	_, err = NewReplies("Not an agent!", Config{})
	require.ErrorIs(t, err, ErrConfig)
	d := newRig(t)
	for name, c := range map[string]Config{
		"Agents has an agent": {Agents: []string{""}}, "Agents has \" a\"": {Agents: []string{" a"}}, "Agents has \"a \"": {DefaultAgent: "a "},
		"RunTime": {RunTime: time.Millisecond}, "RefusalRate": {RefusalRate: -1}, "BodyLimit": {Door: auth.Door{BodyLimit: peerwire.MaxBody + 1}},
		"Origins": {Door: auth.Door{Origins: []string{"no origin"}}}, "OpenProxy": {Door: auth.Door{Authenticate: callers}, OpenProxy: true},
		"AuditAgent": {AuditAgent: "Not an agent!"},
	} {
		_, err := New(replies, d.group, d.settings.Load, c)
		require.ErrorIs(t, err, ErrConfig, name)
		require.ErrorContains(t, err, name+" ")
	}
}
