package gatehttp

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/topics"
)

// A question on a channel or in an event may have shown the beginning only.
func TestLongArgumentsAreApprovedOnlyByWhoWasShownThem(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	f.gates()
	d := f.door(Config{Door: auth.Door{Authenticate: callers}})
	args := topics.Raw(`{"command":"echo ` + strings.Repeat("a", 3000) + `; touch x"}`)
	digest := topics.ArgsSHA256(args)
	const mira, ines = as("mira read,answer *"), as("ines read,answer *")
	approveIt := func(id string, who as) got { return d.do("POST", "/api/gates/"+id+"/decision", approve, who) }
	show := map[string]func(id string){
		"get":  func(id string) { require.Contains(t, d.do("GET", "/api/gates/"+id, "", mira).body, "touch x") },
		"list": func(string) { require.Contains(t, d.do("GET", "/api/gates?session_id=s", "", mira).body, "touch x") },
		"all":  func(string) { require.Contains(t, d.do("GET", "/api/gates?status=pending", "", mira).body, "touch x") },
		"watch": func(string) {
			open, stop, err := d.index.Watch(context.Background(), "caller mira", "s", func(bool, []byte) {})
			require.NoError(t, err)
			defer stop()
			for gate := range open {
				require.Contains(t, string(gate), "touch x")
			}
		},
	}
	for id, see := range show {
		f.ask("s", id, func(r *topics.GateRequest) { r.Args, r.ArgsSHA256 = args, digest })
		d.pending("s", id)
		blind := approveIt(id, mira)
		require.Equal(t, http.StatusConflict, blind.status, blind.body)
		require.Contains(t, blind.body, "/api/gates/"+id)
		require.NotContains(t, blind.body, "touch x")
		see(id)
		require.Equal(t, http.StatusConflict, approveIt(id, ines).status, "another person saw it")
		require.Equal(t, http.StatusOK, approveIt(id, mira).status, id)
	}
	f.ask("s", "digest", func(r *topics.GateRequest) { r.Args, r.ArgsSHA256 = args, digest })
	f.ask("s", "deny", func(r *topics.GateRequest) { r.Args, r.ArgsSHA256 = args, digest })
	f.ask("s", "short")
	d.pending("s", "digest", "deny", "short")
	require.Equal(t, 412, d.do("POST", "/api/gates/digest/decision", `{"verdict":"approve","args_sha256":"00"}`, mira).status)
	require.Equal(t, 200, d.do("POST", "/api/gates/digest/decision", `{"verdict":"approve","args_sha256":"`+digest+`"}`, mira).status)
	require.Equal(t, 200, d.do("POST", "/api/gates/deny/decision", deny, ines).status)
	require.Equal(t, 200, approveIt("short", ines).status, "it is shown whole everywhere")
}
