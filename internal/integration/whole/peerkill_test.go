package whole

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

const (
	peerInstances = 2 // of each side
	peerToken     = "a token of the tests"
)

// Two processes of the dispatcher, with its turns, tasks and sink, and two of the receiver, with its turns, tasks and door,
// are killed at random moments while sessions delegate. Each task ends in one tool result, with the receiver's answer, and in
// one pair of audit records on each side. With exactly-once processors the receiver runs each task once.
func TestDelegatedTasksEndOnceWhileProcessesAreKilled(t *testing.T) {
	tasks := kill.Size(t, "TURNTABLE_TASKS", onBroker(24, 300))
	kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
		p := newPeerWorld(t, guarantee)
		loop := &kill.Loop{
			Seed: 2, Kills: kills(t, 4, 20), Victims: len(p.sides) * peerInstances, Launch: p.launch, Judge: func() { p.judge(tasks) },
			Brokers: p.brokers, Agents: []string{p.sides[0].agent, p.sides[1].agent},
		}
		loop.Each(tasks, 16, p.delegate)
		proxy := p.serveProxy()
		loop.Start()
		p.start(proxy)
		loop.Run(p.ctx, t)
	}, processors.ExactlyOnce, processors.AtLeastOnce)
}

// peerWorld is the two instances under test, and the users of the dispatcher, whose world it is.
type peerWorld struct {
	*world
	dir   string   // of the configurations
	sides [2]*side // the dispatcher, then the receiver
}

// side is one instance: its agent and its processes.
type side struct {
	*world
	role string
	dirs []string
}

func newPeerWorld(t *testing.T, guarantee processors.Guarantee) *peerWorld {
	p := &peerWorld{dir: t.TempDir()}
	for i, role := range []string{dispatcherRole, receiverRole} {
		s := &side{world: newWorld(t, guarantee, topics.WithPeers()), role: role}
		for n := range peerInstances {
			s.dirs = append(s.dirs, filepath.Join(p.dir, role+strconv.Itoa(n)))
			require.NoError(t, os.Mkdir(s.dirs[n], 0o700))
		}
		p.sides[i] = s
	}
	p.world = p.sides[0].world
	return p
}

// configure writes the configurations of both sides. The dispatcher knows the receiver by the address of a proxy that stays
// the same while the receiver's processes come and go.
func (p *peerWorld) configure(receiver string) {
	sum := sha256.Sum256([]byte(peerToken))
	for role, peers := range map[string]map[string]any{
		dispatcherRole: {
			"enabled": true, "instanceId": "hq",
			"outbound": []any{map[string]any{"id": "tenant", "baseUrl": receiver, "token": peerToken, "timeoutMs": 20_000}},
		},
		receiverRole: {
			"enabled": true, "instanceId": "tenant-1", "inboundMaxConcurrent": 64,
			"inboundTokens": []any{map[string]any{"id": "hq", "tokenSha256": hex.EncodeToString(sum[:])}},
		},
	} {
		body, err := json.Marshal(map[string]any{"peers": peers})
		require.NoError(p.t, err)
		require.NoError(p.t, os.WriteFile(filepath.Join(p.dir, peerSettingsFile+"."+role), body, 0o600))
	}
}

// serveProxy starts the proxy before the receiver's doors, and returns its address.
func (p *peerWorld) serveProxy() string {
	proxy := httptest.NewServer(p.sides[1].balancer())
	p.t.Cleanup(proxy.Close)
	p.configure(proxy.URL)
	return proxy.URL
}

// start waits for the processes and starts what outlives them: the models and the users.
func (p *peerWorld) start(proxy string) {
	p.eventually(func() bool { // the topics of the receiver exist once its door serves
		r, err := http.Get(proxy + "/.well-known/hybridclaw-peer.json")
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	for i, s := range p.sides {
		s.model(s.agent, []think.Func{asking, working}[i])
	}
	p.followOutputs()
}

// balancer forwards each request to one of the side's processes. A process that was killed does not answer.
func (s *side) balancer() http.Handler {
	var next atomic.Int64
	return &httputil.ReverseProxy{
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext},
		Rewrite: func(r *httputil.ProxyRequest) {
			address, err := os.ReadFile(filepath.Join(s.dirs[int(next.Add(1))%peerInstances], addressFile))
			if err != nil {
				address = []byte("127.0.0.1:1")
			}
			r.SetURL(&url.URL{Scheme: "http", Host: string(address)})
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}

// launch launches the nth process: those of the dispatcher come first.
func (p *peerWorld) launch(n int) kill.Victim {
	s, n := p.sides[n/peerInstances], n%peerInstances
	c := s.child(s.dirs, n)
	c.Role = s.role
	return kill.Start(s.t, peersProgram, c)
}

// asking is the dispatcher's model: it delegates what it is asked, and then repeats what it was told.
func asking(_ context.Context, s think.Step) (think.Reply, error) {
	in := s.Input()
	if in.Role != nil && *in.Role == "tool" {
		return think.Say(string(in.Content)), nil
	}
	input, err := json.Marshal(map[string]string{"peerId": "tenant", "content": topics.Text(in.Content)})
	return think.Reply{Blocks: []think.Block{
		{Call: &think.Call{ID: "call-" + s.SessionID, Name: "delegate_to_peer", Input: input}},
	}}, err
}

// working is the receiver's model. It takes some time, so that kills meet tasks in progress.
func working(ctx context.Context, s think.Step) (think.Reply, error) {
	for range 1 + len(topics.Text(s.Input().Content))%3 + int(s.SessionID[len(s.SessionID)-1])%16 {
		rest(ctx)
	}
	return think.Say("done: " + topics.Text(s.Input().Content)), nil
}

// delegate sends a message whose turn delegates a task, and waits for the turn's answer.
func (p *peerWorld) delegate(ctx context.Context, n int) error {
	session := fmt.Sprintf("s%03d", n)
	out, err := p.ask(ctx, session, "mira", "task of "+session, session)
	if want := "done: task of " + session; err == nil && !strings.Contains(out.Content, want) {
		return fmt.Errorf("%s was told %q, which does not have %q", session, out.Content, want)
	}
	return err
}
