package whole

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/delegation"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/turn/compact"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
	"github.com/turntable-streams/turntable/topics"
)

// combined is an agent with some switches on, assembled as a user does, and the other instance if it has peers.
type combined struct {
	*world
	on       switches
	url      string // of the doors
	service  *httptest.Server
	callback chan string // answers that the service got
	doors    *agent.Agent
	lounge   lounge

	mu    sync.Mutex
	calls map[string]int // of tools, by key of the call
	asked int            // how often the compactor was asked
}

const (
	callbackSecret = "a secret of at least thirty-two bytes"
	price          = 0.25
)

func newCombined(t *testing.T, on switches) *combined {
	t.Helper()
	guarantee := processors.AtLeastOnce
	if on.has(exactlyOnce) {
		guarantee = processors.ExactlyOnce
	}
	c := &combined{on: on, world: newWorld(t, guarantee), calls: map[string]int{}, callback: make(chan string, 16), lounge: make(lounge, 64)}
	c.service = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.callback <- string(body)
	}))
	t.Cleanup(c.service.Close)

	var doors lateHandler
	server := httptest.NewServer(&doors)
	t.Cleanup(server.Close)
	c.url = server.URL
	config := c.config()
	if on.has(hasPeers) {
		config.Peers = c.peers()
	}
	whole := must(agent.New(c.agent, config))
	c.catalog = whole.Topics()
	if on.has(inTwoProcesses) {
		rest := config
		rest.Parts = agent.Groups | agent.Workers | agent.Senders
		c.runAgent(must(agent.New(c.agent, rest)))
		config.Parts = agent.Doors
		whole = must(agent.New(c.agent, config))
	}
	c.doors = whole
	doors.set(whole.Handler())
	c.runAgent(whole)
	return c
}

// lateHandler is a handler whose address is known before it is made.
type lateHandler struct {
	mu sync.Mutex
	to http.Handler
}

func (h *lateHandler) set(to http.Handler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.to = to
}

func (h *lateHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	to := h.to
	h.mu.Unlock()
	to.ServeHTTP(w, r)
}

// runAgent runs an agent until the test ends, and returns when it is ready.
func (c *combined) runAgent(a *agent.Agent) {
	c.t.Helper()
	c.serve(a.Run)
	select {
	case <-a.Ready():
	case <-c.ctx.Done():
		require.Fail(c.t, "the agent is not ready")
	}
}

// config is what a user writes.
func (c *combined) config() agent.Config {
	config := agent.Config{
		Brokers: c.brokers, Model: think.Func(c.think), CallbackSecret: callbackSecret, Latencies: c.on.has(measures),
		Logger: zaptest.NewLogger(c.t, zaptest.Level(zap.ErrorLevel)),
		Kafka: []processors.Option{
			processors.WithGuarantee(c.guarantee), processors.WithPartitions(partitions), processors.WithInstance("one"),
		},
		Tools: []tools.Tool{
			tools.New("lookup", "Finds a berth.", c.lookup), tools.New("pay", "Pays.", c.pay),
		},
	}
	if c.on.has(streams) {
		config.Model = think.StreamFunc(c.stream)
	}
	if c.on.has(asksPeople) {
		config.Approval = &approval.Policy{
			ReadOnly: []string{"lookup", delegation.SendTool, delegation.CancelTool, peer.ToolName},
			Rules:    []approval.Rule{{Tool: "pay", Effect: approval.Ask}},
		}
	}
	if c.on.has(delivers) {
		config.Deliver = &agent.Deliver{Services: must(sink.ParseServices("harbor:" + c.service.URL))}
	}
	if c.on.has(remembers) {
		config.Memory = &agent.Memory{Updater: updater.Scripted(func(said string) string {
			_, fact, _ := strings.Cut(said, "remember ")
			return fact
		})}
	}
	if c.on.has(budgets) {
		config.Budgets.User.Total = 200 // the price of a ship
	}
	if c.on.has(delegates) {
		config.Delegates = []string{c.agent}
	}
	if c.on.has(hasChannels) {
		config.Channels = &agent.Channels{Accounts: []channel.AccountAdapter{{Name: "main", Adapter: c.lounge}}}
	}
	if c.on.has(compacts) {
		config.Compactor = compact.Func(func(context.Context, compact.Conversation) (compact.Summary, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.asked++
			return compact.Summary{Text: "they talked"}, nil
		})
		config.Turn.HistoryLimit.Messages = 4
	}
	if c.on.has(bothSpellings) {
		config.Turn.BothSpellings = true
	}
	if c.on.has(ordered) {
		config.Turn.OrderedOutputs = true
	}
	if c.on.has(keepsTables) {
		config.StateDir = c.t.TempDir()
	}
	return config
}

// peers runs another instance, and returns the settings with which the agent exchanges tasks with it.
func (c *combined) peers() func() *peer.Settings {
	const here, there = "token-of-the-agent-for-its-peer", "token-of-the-peer-for-the-agent"
	of := func(id, peerID, url, out, in string) func() *peer.Settings {
		sum := sha256.Sum256([]byte(in))
		s := must(peer.ParseSettings(fmt.Appendf(nil, `{"peers":{"enabled":true,"instanceId":%q,"instanceName":%q,
			"outbound":[{"id":%q,"baseUrl":%q,"token":%q}],"inboundTokens":[{"id":%q,"tokenSha256":%q}]}}`,
			id, id, peerID, url, out, peerID, hex.EncodeToString(sum[:])), func(string) (string, bool) { return "", false }))
		return func() *peer.Settings { return s }
	}
	var doors lateHandler
	server := httptest.NewServer(&doors)
	c.t.Cleanup(server.Close)
	other := must(agent.New(c.agent+"-peer", agent.Config{
		Brokers: c.brokers, Model: think.Func(says("the peer did it")), Logger: zap.NewNop(),
		Kafka: []processors.Option{processors.WithPartitions(partitions)}, Peers: of("there", "here", c.url, there, here),
	}))
	doors.set(other.Handler())
	c.runAgent(other)
	return of("here", "there", server.URL, here, there)
}

// stream is think in pieces.
func (c *combined) stream(ctx context.Context, s think.Step) iter.Seq2[think.Delta, error] {
	return func(yield func(think.Delta, error) bool) {
		r, err := c.think(ctx, s)
		if err != nil {
			yield(think.Delta{}, err)
			return
		}
		for _, b := range r.Blocks {
			if b.Call != nil && !yield(think.Delta{Call: b.Call}, nil) {
				return
			}
			for i, word := range strings.SplitAfter(b.Text, " ") {
				if (i > 0 || word != "") && !yield(think.Delta{Text: word}, nil) {
					return
				}
			}
		}
		yield(think.Delta{Usage: &think.Usage{Cost: r.Cost}}, nil)
	}
}

// think is the script of the model. The first word of a message says what it does.
func (c *combined) think(_ context.Context, s think.Step) (think.Reply, error) {
	r, err := c.reply(s)
	dollars := price
	if strings.HasPrefix(topics.Text(s.Input().Content), "buy a ship") {
		dollars = 200
	}
	r.Cost = &dollars
	return r, err
}

func (c *combined) reply(s think.Step) (think.Reply, error) {
	in := s.Input()
	said := topics.Text(in.Content)
	calls := func(tool, input string) (think.Reply, error) {
		return think.Reply{Blocks: []think.Block{
			{Text: "Let me see."}, {Call: &think.Call{ID: "call-" + s.Key, Name: tool, Input: topics.Raw(input)}},
		}}, nil
	}
	if cmp.Or(*in.Role) == "tool" {
		return think.Say("the result is " + string(in.Content)), nil
	}
	switch word, _, _ := strings.Cut(said, " "); word {
	case "lookup":
		return calls("lookup", `{"at":"18:00"}`)
	case "pay":
		return calls("pay", `{"cents":700}`)
	case "delegate":
		return calls(delegation.SendTool, fmt.Sprintf(`{"agent_id":%q,"message":"lookup for another"}`, c.agent))
	case "peer":
		return calls(peer.ToolName, `{"peerId":"there","content":"work"}`)
	case "recall":
		return think.Say("known: " + s.Memoir), nil
	case "[From:":
		return think.Say("announced: " + said), nil
	}
	return think.Say("heard: " + said), nil
}

type at struct {
	At string `json:"at"`
}

type sum struct {
	Cents int `json:"cents"`
}

func (c *combined) count(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[tools.CallOf(ctx).Key()]++
}

// lookup answers at once, or later through the door with the token of its call.
func (c *combined) lookup(ctx context.Context, in at) (any, error) {
	c.count(ctx)
	result := map[string]string{"berth": "N4 at " + in.At}
	if !c.on.has(answersLater) {
		return result, nil
	}
	token, err := tools.CallOf(ctx).Token()
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+turnhttp.ToolResponsePath, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusAccepted {
		return nil, fmt.Errorf("the callback door answers %d", answer.StatusCode)
	}
	return tools.Pending{}, nil
}

func (c *combined) pay(ctx context.Context, in sum) (any, error) {
	c.count(ctx)
	return map[string]int{"paid": in.Cents}, nil
}
