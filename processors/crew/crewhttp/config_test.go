package crewhttp

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
)

func TestInvalidConfigurationIsReported(t *testing.T) {
	x, err := NewIndex("harbor", Config{})
	require.NoError(t, err)
	for name, c := range map[string]Config{
		"Prefix": {Prefix: "/api/"}, "RowLimit": {RowLimit: -1}, "History.Bytes": {History: History{Bytes: -1}}, "TextBuffer": {TextBuffer: -1},
		"Origins": {Door: auth.Door{Origins: []string{"*"}}}, "Hosts": {Door: auth.Door{Hosts: []string{"crew.example:80"}}},
		"ClientLimit": {ClientLimit: -1}, "QueueBytes": {QueueBytes: -1}, "FrameLimit": {FrameLimit: -1},
		"PongTimeout": {PongTimeout: -1}, "DecisionWait": {DecisionWait: time.Minute},
	} {
		_, err := NewIndex("harbor", c)
		require.ErrorIs(t, err, ErrConfig, name)
		require.ErrorContains(t, err, ": "+name+" ")
		if name != "Prefix" { // which New has from its index
			_, err = New(x, &outbox{}, c)
			require.ErrorIs(t, err, ErrConfig, name)
		}
	}
	_, err = NewIndex("harbor", Config{DecisionWait: -time.Second})
	require.NoError(t, err, "negative: no wait")
	_, err = NewIndex("a/b", Config{})
	require.ErrorIs(t, err, ErrConfig)
	_, err = New(nil, nil, Config{})
	require.ErrorContains(t, err, "index is nil")
	require.ErrorContains(t, err, "publisher is nil")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, x.Run(ctx, []string{"localhost:1"}))
	require.ErrorIs(t, x.Run(ctx, []string{"localhost:1"}), ErrConfig)
}

func TestDocumentationNamesEveryPath(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for _, rt := range (&Handler{}).allRoutes() {
		first, _, _ := strings.Cut(rt.Path, "*")
		if first != "agents/" { // those of an agent are listed with {id}
			require.Contains(t, string(doc), "/"+strings.TrimSuffix(first, "/"), rt.Path)
		}
		last := rt.Path[strings.LastIndexByte(rt.Path, '/')+1:]
		if last != "*" {
			require.Contains(t, string(doc), last)
		}
	}
}

func TestRequestsAreServedUnderThePrefixOfTheIndex(t *testing.T) {
	for prefix, path := range map[string]string{"": "/api/agents", "/crew": "/crew/agents", "/": "/agents"} {
		r := newRig(t, func(c *Config) { c.Prefix = prefix })
		require.Equal(t, http.StatusOK, r.do("GET", path, "").status, prefix)
		require.Equal(t, strings.TrimSuffix(path, "/agents")+"/agents/a/permissions/p", r.index.linkTo("a", "p"))
	}
}
