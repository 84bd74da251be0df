package turns

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// conversation is a session whose workers are those of FlightDeck's SDKs.
type conversation struct {
	*testing.T
	ctx    context.Context
	names  wiretest.Names
	client *kgo.Client

	outputs []members
	letters []string // the reasons of dead letters
}

// converse starts the turn of an agent, its workers, and the user.
func converse(t *testing.T, guarantee processors.Guarantee, typescript bool, turns turn.Config) *conversation {
	t.Helper()
	c := config{
		agent: testbroker.Agent(), instance: "i1", brokers: testbroker.Start(t), guarantee: guarantee, turn: turns,
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	require.NoError(t, wiretest.CreateTopics(ctx, c.brokers, c.agent, 3))
	(&field{T: t, config: c, ctx: ctx}).visible(wiretest.NamesOf(c.agent))
	start(t, c)
	startSDKThink(t, c.brokers, c.agent, typescript)
	startSDKTools(t, c.brokers, c.agent)
	names := wiretest.NamesOf(c.agent)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.brokers...), kgo.ConsumeTopics(names.MessageOutput, names.DeadLetters),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(20*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return &conversation{T: t, ctx: ctx, names: names, client: client}
}

// ask sends a message and returns its output.
func (c *conversation) ask(text string) members {
	c.Helper()
	say := wiretest.Say{Session: "harbor-s19", User: "mira", Text: text}
	message := &kgo.Record{Topic: c.names.MessageInput, Key: []byte(say.Session), Value: say.Value()}
	require.NoError(c, c.client.ProduceSync(c.ctx, message).FirstErr())
	before := len(c.outputs)
	for len(c.outputs) == before {
		c.read()
	}
	require.Len(c, c.outputs, before+1, "one output")
	return c.outputs[before]
}

// read waits for outputs or dead letters.
func (c *conversation) read() {
	c.Helper()
	fetches := c.client.PollFetches(c.ctx)
	require.NoError(c, c.ctx.Err(), "%d outputs, dead letters: %v", len(c.outputs), c.letters)
	for _, r := range fetches.Records() {
		if r.Topic == c.names.MessageOutput {
			c.outputs = append(c.outputs, readObject(r.Value))
			continue
		}
		for _, h := range r.Headers {
			if h.Key == topics.HeaderErrorReason {
				c.letters = append(c.letters, string(h.Value))
			}
		}
	}
}

// The runners of FlightDeck's Python and TypeScript SDKs, which read and write other names than its Java services, hold a
// conversation: tools that succeed with a text and with an object, a tool that fails, a model that fails, and a question
// whose answer needs all that was said.
func TestSDKWorkersHoldAConversation(t *testing.T) {
	for _, guarantee := range testbroker.Guarantees(t, guarantees...) {
		for sdk, typescript := range map[string]bool{"Python": false, "TypeScript": true} {
			t.Run(fmt.Sprintf("%s, %s", sdk, guarantee), func(t *testing.T) {
				t.Parallel()
				c := converse(t, guarantee, typescript, turn.Config{BothSpellings: true})
				cost := 0.0
				answered := func(text, want string, calls int) {
					t.Helper()
					output := c.ask(text)
					require.Equal(t, want, output["content"])
					require.Equal(t, "mira", output["user_id"])
					require.NotContains(t, output, "status")
					cost += 0.002 * float64(calls)
					require.InDelta(t, cost, output["cost"], 1e-9)
				}
				const refused = `{"error":"card refused","reason":"tool_failed"}`
				answered("Which berth?", `Results: {"result":"N4"}`, 2)
				answered("Book it", `Results: {"booked":true} `+refused, 2)

				output := c.ask("Fail")
				require.Equal(t, "error", output["status"])
				require.Contains(t, output["content"], "upstream 529")
				require.Equal(t, members{"code": "think_failed", "message": output["content"]}, output["error"])
				require.InDelta(t, cost, output["cost"], 1e-9)

				answered("What was said?",
					`Remembered: Which berth? {"result":"N4"} Book it {"booked":true} `+refused+` What was said?`, 1)
				for len(c.letters) == 0 {
					c.read()
				}
				require.Len(t, c.letters, 1, "the report that looks like an answer")
			})
		}
	}
}

// Without the option they read an empty prompt.
func TestSDKWorkersCannotReadOneSpelling(t *testing.T) {
	c := converse(t, processors.AtLeastOnce, false, turn.Config{})
	output := c.ask("Which berth?")
	require.Equal(t, "error", output["status"])
	require.Contains(t, output["content"], "at least one message is required")
}
