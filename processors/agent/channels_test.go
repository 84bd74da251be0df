package agent_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// board is a platform: it keeps what is sent to it.
type board struct {
	name string
	sent chan adapter.Chunk
}

func (b board) Channel() string      { return b.name }
func (board) Traits() adapter.Traits { return adapter.Traits{Format: text.Plain, Threads: true} }
func (b board) Send(_ context.Context, c adapter.Chunk) (adapter.Sent, error) {
	b.sent <- c
	return adapter.Sent{}, nil
}

// doorBoard is a board that sends requests, as Slack, and runBoard one that is asked, as Telegram.
type (
	doorBoard struct{ board }
	runBoard  struct{ board }
)

func (b doorBoard) Handler(to adapter.Receiver) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := to.Receive(r.Context(), b.mention(r.URL.Query().Get("text"))); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
}

func (b runBoard) Run(ctx context.Context, to adapter.Receiver) error {
	if err := to.Receive(ctx, b.mention("Where is order 7?")); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// mention is a text that mentions the account in a room.
func (b board) mention(text string) adapter.Inbound {
	return adapter.Inbound{Event: "e-" + text, Text: text, Mentioned: true, Origin: topics.Origin{
		Channel: b.name, Account: "main", Recipient: "room", Group: true, User: "mira", MessageID: "m-1",
	}}
}

func TestChannelsAnswerWhereTheQuestionWas(t *testing.T) {
	door, run, other := doorBoard{newBoard("door")}, runBoard{newBoard("run")}, newBoard("other")
	a := must(agent.New("support", agent.Config{
		Model: think.StreamFunc(script), Tools: []tools.Tool{find}, Logger: zap.NewNop(), Delegates: []string{"support"},
		Approval: &approval.Policy{Default: approval.Ask},
		Channels: &agent.Channels{Accounts: []channel.AccountAdapter{{Name: "main", Adapter: door}, {Name: "main", Adapter: run}, {Name: "main", Adapter: other}}},
	}))
	start(t, a)
	w := httptest.NewRecorder()
	a.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, agent.ChannelsPath+"door/main?text=Where+is+order+7", nil))
	require.Equal(t, http.StatusOK, w.Code)
	require.NoError(t, a.Receive(t.Context(), other.mention("Where is order 7?")))
	for _, b := range []board{door.board, run.board, other} {
		question := <-b.sent
		require.Contains(t, question.Text, "find_order")
		require.NotNil(t, question.Ask)
		require.Equal(t, "m-1", question.To.Thread, "the mention starts a thread")
		in := b.mention("/approve")
		in.Origin.Thread = "m-1"
		require.NoError(t, a.Receive(t.Context(), in))
		var texts []string
		for range 2 { // that the decision has arrived, and the answer
			c := <-b.sent
			require.Equal(t, "m-1", c.To.Thread)
			texts = append(texts, c.Text)
		}
		require.Contains(t, texts, "It is on its way.")
	}
}

func newBoard(name string) board { return board{name, make(chan adapter.Chunk, 10)} }

func TestReceiveNeedsChannels(t *testing.T) {
	for _, c := range []agent.Config{
		{Model: think.StreamFunc(script)},
		{
			Model: think.StreamFunc(script), Parts: agent.Groups,
			Channels: &agent.Channels{Accounts: []channel.AccountAdapter{{Name: "main", Adapter: newBoard("b")}}},
		},
	} {
		require.ErrorIs(t, must(agent.New("support", c)).Receive(t.Context(), adapter.Inbound{}), agent.ErrNoChannels)
	}
}

func TestChannelsNeedNoOtherCapability(t *testing.T) {
	b := newBoard("b")
	a := must(agent.New("support", agent.Config{
		Model: think.StreamFunc(script), Tools: []tools.Tool{find}, Logger: zap.NewNop(),
		Channels: &agent.Channels{Accounts: []channel.AccountAdapter{{Name: "main", Adapter: b}}},
	}))
	start(t, a)
	require.NoError(t, a.Receive(t.Context(), b.mention("Where is order 7?")))
	require.Equal(t, "It is on its way.", (<-b.sent).Text)
}

// refusedBoard is a board that does not know the token of its account.
type refusedBoard struct{ board }

func (refusedBoard) Check(context.Context) error {
	return &adapter.Failure{Reason: "invalid_auth", Status: http.StatusUnauthorized}
}

func TestHealthSaysWhichPlatformRefusesItsAccount(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:0": `"channels":{"b/main":"the platform refuses the account: invalid_auth; check the token or password of the account and restart"}`,
		"":            `"channels":{"b/main":"not accepted by the platform; the log says why"}`,
	} {
		core, logs := observer.New(zap.WarnLevel)
		a := must(agent.New("support", agent.Config{
			Model: think.StreamFunc(script), Logger: zap.New(core), Listen: listen, Open: true,
			Channels: &agent.Channels{Accounts: []channel.AccountAdapter{{Name: "main", Adapter: refusedBoard{newBoard("b")}}}},
		}))
		start(t, a)
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, agent.HealthPath, nil))
		require.Equal(t, http.StatusOK, w.Code, "the other doors work")
		require.Contains(t, w.Body.String(), want)
		require.Len(t, logs.FilterField(zap.String("reason", "invalid_auth")).All(), 1)
	}
}
