package voice

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/topics"
)

func TestAnswerIsSpokenInTheCallThatAskedAndInNoOther(t *testing.T) {
	r, s, m := &platformtest.Inbox{}, &synthesizer{}, newMedia(t)
	calls := newCalls(t, s, r)
	ada, adaHears := m.call(t, calls, "call-1", "+491")
	_, other := m.call(t, calls, "call-2", "+491") // the same person in another call
	require.NoError(t, ada.Heard(t.Context(), Utterance{ID: "u1", Text: " What is in my inbox? "}))
	require.Equal(t, []adapter.Inbound{{
		Event: r.Got[0].Event, Text: "What is in my inbox?", Mentioned: true,
		Origin: topics.Origin{
			Channel: "voice", Account: "main", Recipient: "call-1", MessageID: "u1", User: "+491", UserName: "+491",
			Proof: topics.ProofNone,
		},
	}}, r.Got)
	_, err := calls.Send(t.Context(), chunk(r.Got[0].Origin, "d/0", "Two mails."))
	require.NoError(t, err)
	require.Equal(t, "Two mails.", adaHears.hears())
	require.Equal(t, []string{"Two mails."}, s.spoken)

	to := r.Got[0].Origin
	to.Recipient = "call-2"
	_, err = calls.Send(t.Context(), chunk(to, "d/1", "The second call."))
	require.NoError(t, err)
	require.Equal(t, "The second call.", other.hears(), "it heard nothing of the first")
}

func TestEndedCallIsAFinalFailureAndNothingIsSpoken(t *testing.T) {
	s, m := &synthesizer{}, newMedia(t)
	calls := newCalls(t, s, &platformtest.Inbox{})
	call, _ := m.call(t, calls, "call-1", "+491")
	_, stays := m.call(t, calls, "call-2", "+491")
	call.End()
	call.End()
	_, err := calls.Send(t.Context(), chunk(call.origin("u1"), "d/0", "late"))
	require.Equal(t, adapter.Failure{Reason: "call has ended", Final: true}, platformtest.Failure(t, err))
	require.Empty(t, s.spoken)
	require.ErrorIs(t, call.Heard(t.Context(), Utterance{ID: "u2", Text: "hello?"}), ErrEnded)

	to := call.origin("u1")
	to.Recipient = "call-2"
	_, err = calls.Send(t.Context(), chunk(to, "d/1", "here"))
	require.NoError(t, err)
	require.Equal(t, "here", stays.hears())
	to.Account = "other"
	_, err = calls.Send(t.Context(), chunk(to, "d/2", "x"))
	require.True(t, platformtest.Failure(t, err).Final)
}

func TestEndOfTheCallInterruptsItsSpeech(t *testing.T) {
	begun := make(chan struct{})
	s := &synthesizer{make: func(ctx context.Context, _ string) (io.ReadCloser, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	m := newMedia(t)
	calls := newCalls(t, s, &platformtest.Inbox{})
	call, _ := m.call(t, calls, "call-1", "+491")
	failed := make(chan error, 1)
	go func() {
		_, err := calls.Send(context.Background(), chunk(call.origin("u1"), "d/0", "long"))
		failed <- err
	}()
	<-begun
	call.End()
	require.Equal(t, adapter.Failure{Reason: ReasonEnded, Final: true}, platformtest.Failure(t, <-failed))
}

func TestLongTextIsRefusedAndNotCut(t *testing.T) {
	s, m := &synthesizer{}, newMedia(t)
	calls := newCalls(t, s, &platformtest.Inbox{})
	call, hears := m.call(t, calls, "call-1", "+491")
	_, err := calls.Send(t.Context(), chunk(call.origin("u1"), "d/0", strings.Repeat("x", MaxText+1)))
	require.Equal(t, adapter.Failure{Reason: reasonTooLong, Final: true}, platformtest.Failure(t, err))
	require.Empty(t, s.spoken)
	_, err = calls.Send(t.Context(), chunk(call.origin("u1"), "d/1", strings.Repeat("x", MaxText)))
	require.NoError(t, err)
	require.Len(t, hears.hears(), MaxText)
	require.True(t, calls.Traits().Spoken)
	require.Equal(t, MaxText, calls.Traits().Limit.Max)
}

func TestRepeatedChunkIsSpokenOnce(t *testing.T) {
	s, m := &synthesizer{}, newMedia(t)
	calls := newCalls(t, s, &platformtest.Inbox{})
	call, hears := m.call(t, calls, "call-1", "+491")
	for _, key := range []string{"d/0", "d/0", "d/1"} {
		_, err := calls.Send(t.Context(), chunk(call.origin("u1"), key, key))
		require.NoError(t, err)
	}
	require.Equal(t, "d/0", hears.hears())
	require.Equal(t, "d/1", hears.hears())
	for range 3 * maxPlayed {
		call.played = append(call.played, "old")
	}
	_, err := calls.Send(t.Context(), chunk(call.origin("u1"), "d/2", "x"))
	require.NoError(t, err)
	require.Len(t, call.played, maxPlayed)
}

// closing is an audio stream that ends when it is closed.
type closing struct{ closed chan struct{} }

func (c closing) Read([]byte) (int, error) { <-c.closed; return 0, io.ErrClosedPipe }
func (c closing) Close() error             { close(c.closed); return nil }

func TestFailuresOfSynthesisAndPlaying(t *testing.T) {
	audio := func(s string) func(context.Context, string) (io.ReadCloser, error) {
		return func(context.Context, string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s)), nil }
	}
	for name, c := range map[string]struct {
		make func(context.Context, string) (io.ReadCloser, error)
		want adapter.Failure
	}{
		"error": {func(context.Context, string) (io.ReadCloser, error) { return nil, errors.New("key sk-1 is wrong") }, adapter.Failure{Reason: "speech cannot be synthesized"}},
		"refused": {func(context.Context, string) (io.ReadCloser, error) {
			return nil, &adapter.Failure{Reason: "status 400", Final: true}
		}, adapter.Failure{Reason: "status 400", Final: true}},
		"too large": {audio(strings.Repeat("x", 101)), adapter.Failure{Reason: "audio is too large", Final: true}},
		"no audio":  {audio(""), adapter.Failure{Reason: "speech has no audio"}},
		"cut": {func(context.Context, string) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader("half"), iotestErr{})), nil
		}, adapter.Failure{Reason: "speech cannot be synthesized"}},
		"hangs": {func(context.Context, string) (io.ReadCloser, error) { return closing{make(chan struct{})}, nil }, adapter.Failure{Reason: topics.ReasonTimeout}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMedia(t)
			calls := newCalls(t, &synthesizer{make: c.make}, &platformtest.Inbox{}, func(c *Config) { c.MaxAudio = 100 })
			if name == "hangs" {
				calls.config.Timeout = 50 * time.Millisecond
			}
			call, hears := m.call(t, calls, "call-1", "+491")
			_, err := calls.Send(t.Context(), chunk(call.origin("u1"), "d/0", "x"))
			require.Equal(t, c.want, platformtest.Failure(t, err))
			calls.config.Synthesizer, calls.config.Timeout = &synthesizer{}, platformtest.WaitFor
			_, err = calls.Send(t.Context(), chunk(call.origin("u1"), "d/0", "again"))
			require.NoError(t, err)
			require.Equal(t, "again", hears.hears(), "nothing of the failed attempt was heard")
		})
	}
}

type iotestErr struct{}

func (iotestErr) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

type playing func(context.Context, []byte) error

func (p playing) Play(ctx context.Context, audio []byte) error { return p(ctx, audio) }

func TestFailuresOfThePlayer(t *testing.T) {
	calls := newCalls(t, &synthesizer{}, &platformtest.Inbox{})
	for _, c := range []struct {
		err  error
		want adapter.Failure
	}{
		{ErrEnded, adapter.Failure{Reason: ReasonEnded, Final: true}},
		{errors.New("buffer of +491 is full"), adapter.Failure{Reason: "call did not take the audio"}},
	} {
		call, err := calls.Begin("call", Caller{ID: "+491"}, playing(func(context.Context, []byte) error { return c.err }))
		require.NoError(t, err)
		_, err = calls.Send(t.Context(), chunk(call.origin("u1"), "d/0", "x"))
		require.Equal(t, c.want, platformtest.Failure(t, err))
		call.End()
	}
}

func TestUtterancesAreEventsInOrderAndNeverCommands(t *testing.T) {
	r := &platformtest.Inbox{}
	calls := newCalls(t, &synthesizer{}, r)
	nothing := playing(func(context.Context, []byte) error { return nil })
	call, err := calls.Begin("call-1", Caller{ID: "+491"}, nothing)
	require.NoError(t, err)
	other, err := calls.Begin("call-2", Caller{ID: "+491"}, nothing)
	require.NoError(t, err)
	require.NoError(t, call.Heard(t.Context(), Utterance{ID: "u1", Text: " / /new "}))
	require.NoError(t, call.Heard(t.Context(), Utterance{ID: "u1", Text: "/new"}))
	require.NoError(t, call.Heard(t.Context(), Utterance{ID: "u1", Text: "/\t/\u00a0/new"}))
	require.NoError(t, other.Heard(t.Context(), Utterance{ID: "u1", Text: "x\xff"}))
	require.NoError(t, call.Heard(t.Context(), Utterance{ID: "u2", Text: " / "}))
	require.Len(t, r.Got, 4)
	require.Equal(t, []string{"new", "new", "new", "x\uFFFD"}, []string{r.Got[0].Text, r.Got[1].Text, r.Got[2].Text, r.Got[3].Text})
	require.Equal(t, r.Got[0].Event, r.Got[1].Event)
	require.NotEqual(t, r.Got[0].Event, r.Got[3].Event)
	require.ErrorIs(t, call.Heard(t.Context(), Utterance{Text: "x"}), ErrCall)
	require.ErrorIs(t, call.Heard(t.Context(), Utterance{ID: "u3", Text: strings.Repeat("x", maxHeard+1)}), ErrCall)
	require.ErrorIs(t, call.Heard(t.Context(), Utterance{ID: strings.Repeat("x", 600), Text: "x"}), ErrCall)
	r.Err = errors.New("broker is unavailable")
	require.ErrorIs(t, call.Heard(t.Context(), Utterance{ID: "u3", Text: "x"}), r.Err)

	call.hearing <- struct{}{} // an utterance is being passed on
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, call.Heard(ctx, Utterance{ID: "u4", Text: "x"}), context.Canceled)
	<-call.hearing
}

func TestCallsAreBoundedAndHaveIDsOfTheirOwn(t *testing.T) {
	calls := newCalls(t, &synthesizer{}, &platformtest.Inbox{}, func(c *Config) { c.MaxCalls = 2 })
	nothing := playing(func(context.Context, []byte) error { return nil })
	begin := func(id, caller string) error { _, err := calls.Begin(id, Caller{ID: caller}, nothing); return err }
	require.ErrorIs(t, begin("", "+491"), ErrCall)
	require.ErrorIs(t, begin("a", ""), ErrCall)
	require.ErrorIs(t, begin(strings.Repeat("a", 600), "+491"), ErrCall)
	require.NoError(t, begin("a", "+491"))
	require.ErrorIs(t, begin("a", "+492"), ErrCall)
	require.NoError(t, begin("b", "+491"))
	require.ErrorIs(t, begin("c", "+491"), ErrCall)
	calls.call("b").End()
	require.NoError(t, begin("c", "+491"))
	_, err := calls.Begin("d", Caller{ID: "x"}, nil)
	require.ErrorIs(t, err, ErrCall)
	calls.Close()
	require.Nil(t, calls.call("a"))
	require.ErrorIs(t, begin("e", "+491"), ErrEnded)
}

func TestConfigurationIsChecked(t *testing.T) {
	s, r := &synthesizer{}, &platformtest.Inbox{}
	for name, c := range map[string]Config{
		"account": {Synthesizer: s}, "synthesizer": {Account: "main"}, "limit": {Account: "main", Synthesizer: s, MaxCalls: -1},
	} {
		_, err := New(c, r)
		require.ErrorIs(t, err, ErrConfig, name)
	}
	_, err := New(Config{Account: "main", Synthesizer: s}, nil)
	require.ErrorIs(t, err, ErrConfig)
}
