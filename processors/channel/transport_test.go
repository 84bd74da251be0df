package channel

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

func TestAnswerGoesToItsOriginInOrder(t *testing.T) {
	f := newFixture(t, four())
	r, _, err := exchange(t, f.t, answer(words))
	require.NoError(t, err)
	require.Equal(t, chunksOfWords, f.texts())
	require.Equal(t, StatusSent, r.Status)
	require.Equal(t, 5, r.Chunks)
	require.Equal(t, []adapter.Sent{{ID: "m1"}, {ID: "m2"}, {ID: "m3"}, {ID: "m4"}, {ID: "m5"}}, r.Sent)
	for i, c := range f.accepted {
		require.Equal(t, room, c.To)
		require.Equal(t, i, c.Index)
		require.Equal(t, 5, c.Count)
		require.Equal(t, "front", c.SenderName)
		require.Equal(t, text.Plain, c.Format)
		require.Equal(t, r.Sent[:i], append([]adapter.Sent{}, c.Previous...))
	}
}

func TestChunksHaveOneKeyEach(t *testing.T) {
	f := newFixture(t, four())
	f.fail = third(&adapter.Failure{Reason: "status 503"})
	_, raw, err := exchange(t, f.t, answer(words))
	require.Error(t, err)
	d := answer(words)
	d.Progress, d.Attempt = raw, 2
	_, _, err = exchange(t, f.process(t), d)
	require.NoError(t, err)
	require.Equal(t, []string{"d-1/0", "d-1/1", "d-1/2", "d-1/3", "d-1/4"}, f.keys())
}

func TestTransportResumesAtTheChunkThatFailed(t *testing.T) {
	f := newFixture(t, four())
	f.fail = third(&adapter.Failure{Reason: "status 503", Status: 503})
	r, raw, err := exchange(t, f.t, answer(words))
	require.Equal(t, sink.Failure{Reason: "status 503", Status: 503}, failure(t, err))
	require.Equal(t, StatusPartial, r.Status)
	require.Equal(t, 2, r.Accepted)
	require.Equal(t, chunksOfWords[:2], f.texts())

	d := answer(words)
	d.Progress, d.Attempt = raw, 2
	r, _, err = exchange(t, f.process(t), d)
	require.NoError(t, err)
	require.Equal(t, StatusSent, r.Status)
	require.Equal(t, chunksOfWords, f.texts())
	require.Equal(t, []adapter.Sent{{ID: "m1"}, {ID: "m2"}}, f.accepted[2].Previous)
	require.Len(t, r.Sent, 5)
}

func TestRefusalOfAChunkKeepsWhatWasSent(t *testing.T) {
	f := newFixture(t, four())
	f.fail = third(&adapter.Failure{Reason: "is_archived", Final: true})
	r, _, err := exchange(t, f.t, answer(words))
	require.True(t, failure(t, err).Final)
	require.Equal(t, StatusPartial, r.Status)
	require.Equal(t, []adapter.Sent{{ID: "m1"}, {ID: "m2"}}, r.Sent)
}

func TestProcessDoesNotRepeatWhatItSent(t *testing.T) {
	f := newFixture(t, four())
	f.fail = third(&adapter.Failure{Reason: "status 503"})
	_, _, err := exchange(t, f.t, answer(words))
	require.Error(t, err)
	for range 2 { // the receipt was lost: the attempts have no progress
		r, _, err := exchange(t, f.t, answer(words))
		require.NoError(t, err)
		require.Equal(t, StatusSent, r.Status)
		require.Equal(t, chunksOfWords, f.texts())
	}
}

func TestRenderingIsPinnedAfterTheFirstChunk(t *testing.T) {
	f := newFixture(t, four(), func(a *Account) { a.Prefix = PrefixBracket })
	f.fail = third(&adapter.Failure{Reason: "status 503"})
	const content = "**bold** & more"
	_, raw, err := exchange(t, f.t, answer(content))
	require.Error(t, err)
	f.configure(func(a *Account) { a.Format = text.TelegramHTML })
	f.traits.Limit.Max = 400
	d := answer(content)
	d.Progress = raw
	_, _, err = exchange(t, f.process(t), d)
	require.NoError(t, err)
	require.Equal(t, text.Split("[front] "+content, text.Plain, text.Limit{Max: 4}), f.texts())
	require.Equal(t, text.Plain, f.accepted[3].Format)

	other := answer(content)
	other.DeliveryID = "d-2"
	_, _, err = exchange(t, f.t, other)
	require.NoError(t, err)
	require.Equal(t, "<b>bold</b> &amp; more", f.texts()[len(f.texts())-1], "the next message has the new settings")
}

func TestOtherRenderingIsSentAgainWithOtherKeys(t *testing.T) {
	f := newFixture(t, four())
	_, raw, err := exchange(t, f.t, answer("aaaa bbbb"))
	require.NoError(t, err)
	d := answer(words) // as if another build had rendered it
	d.Progress = raw
	_, _, err = exchange(t, f.process(t), d)
	require.NoError(t, err)
	require.Equal(t, append([]string{"aaaa", "bbbb"}, chunksOfWords...), f.texts())
	keys := map[string]bool{}
	for _, k := range f.keys() {
		require.True(t, strings.HasPrefix(k, "d-1/"))
		keys[k] = true
	}
	require.Len(t, keys, 7)
}

func TestRetryAfterIsPassedOn(t *testing.T) {
	f := newFixture(t, four())
	f.fail = func(int, adapter.Chunk) error {
		return &adapter.Failure{Reason: "ratelimited", Status: 429, RetryAfter: 7 * time.Second}
	}
	_, raw, err := exchange(t, f.t, answer(words))
	require.Nil(t, raw)
	require.Equal(t, sink.Failure{Reason: "ratelimited", Status: 429, RetryAfter: 7 * time.Second}, failure(t, err))
}

func TestErrorsOfAdaptersAreNotQuoted(t *testing.T) {
	f := newFixture(t, four())
	for _, c := range []struct {
		fail   func(int, adapter.Chunk) error
		reason string
	}{
		{func(int, adapter.Chunk) error { return errSecret }, "failed"},
		{func(int, adapter.Chunk) error { panic(errSecret.Error()) }, "adapter panicked"},
		{func(int, adapter.Chunk) error { return fmt.Errorf("%w: secret", context.DeadlineExceeded) }, "timeout"},
		{func(int, adapter.Chunk) error { return fmt.Errorf("%w: secret", context.Canceled) }, "sink was stopped"},
	} {
		f.fail = c.fail
		_, _, err := exchange(t, f.t, answer(words))
		require.Equal(t, sink.Failure{Reason: c.reason}, failure(t, err))
	}
}

func TestEmptyAnswerPostsNothing(t *testing.T) {
	f := newFixture(t, four(), func(a *Account) { a.Prefix = PrefixBoldBracket })
	for _, content := range []string{"", " \n\t", "\u200b", "``` go\n```"} {
		_, raw, err := exchange(t, f.t, answer(content))
		require.Equal(t, sink.Failure{Reason: "nothing to send", Suppressed: true}, failure(t, err))
		require.Equal(t, `{"status":"suppressed"}`, string(raw), content)
	}
	_, raw, err := exchange(t, f.t, failedOutput(topics.CodeEmptyResponse, "the model's reply is empty"))
	require.True(t, failure(t, err).Suppressed)
	require.Equal(t, `{"status":"suppressed"}`, string(raw), "as the turn reports it")
	require.Zero(t, f.calls)
}

func TestRemovedChannelIsRefusedWithTheReason(t *testing.T) {
	f := newFixture(t, four())
	refused := sink.Failure{Reason: "channel is not configured", Final: true}
	f.live.Store(&Settings{Accounts: []Account{{Channel: "slack", Name: "other"}, {Channel: "teams", Name: "main"}}})
	_, raw, err := exchange(t, f.t, answer("x"))
	require.Equal(t, refused, failure(t, err))
	require.Nil(t, raw)
	f.live.Store(nil)
	_, _, err = exchange(t, f.t, answer("x"))
	require.Equal(t, refused, failure(t, err))
	require.Zero(t, f.calls)

	none, err := NewTransport("front", f.live.Load, nil, TransportConfig{})
	require.NoError(t, err)
	f.configure()
	_, _, err = exchange(t, none, answer("x"))
	require.Equal(t, refused, failure(t, err), "it has no adapter")

	f.fail = func(n int, _ adapter.Chunk) error {
		if n == 2 {
			f.live.Store(&Settings{})
		}
		return nil
	}
	r, raw, err := exchange(t, f.t, answer(words))
	require.Equal(t, refused, failure(t, err))
	require.Equal(t, StatusPartial, r.Status)
	require.Equal(t, chunksOfWords[:2], f.texts(), "no chunk is sent after the removal")
	d := answer(words)
	d.Progress = raw
	r, _, err = exchange(t, f.process(t), d)
	require.Equal(t, refused, failure(t, err))
	require.Equal(t, 2, r.Accepted, "the receipt still says what was sent")
}

func TestErrorsAreShortTexts(t *testing.T) {
	const internals = `{"error":{"type":"x","message":"secret prompt"}} https://api.invalid`
	for code, want := range map[topics.Code]string{
		topics.CodeThinkTimeout: textTimeout, topics.CodeThinkFailed: textError, topics.CodeTooLarge: textTooLong,
		topics.CodeInternal: textError, "unheard_of": textError, topics.CodeCancelled: "Stopped.",
	} {
		f := newFixture(t, adapter.Traits{})
		_, _, err := exchange(t, f.t, failedOutput(code, internals))
		require.NoError(t, err)
		require.Equal(t, []string{want}, f.texts(), code)
	}
	for message, want := range map[string]string{
		"anthropic: 429 Too Many Requests: " + internals: textRate, "prompt is too long: " + internals: textTooLong,
		"invalid API key " + internals: textAccess, "Overloaded " + internals: textOverload, "deadline " + internals: textTimeout,
		"model not found " + internals: textModel, internals: textError,
	} {
		require.Equal(t, want, errorText(topics.OutputError{Code: topics.CodeThinkFailed, Message: message}))
	}
	for _, code := range []topics.Code{
		topics.CodeQueueFull, topics.CodeBusy, topics.CodeInvalidMessage, topics.CodeTooManySteps, topics.CodeOverBudget,
	} {
		got := errorText(topics.OutputError{Code: code, Message: internals})
		require.NotEqual(t, textError, got, code)
		require.NotContains(t, got, "secret")
		require.Less(t, len(got), 200)
	}
}

func TestQuietAccountsGetNoErrors(t *testing.T) {
	quiet := func(a *Account) { a.QuietErrors = true }
	for _, f := range []*fixture{newFixture(t, adapter.Traits{}, quiet), newFixture(t, adapter.Traits{QuietErrors: true})} {
		r, _, err := exchange(t, f.t, failedOutput(topics.CodeInternal, "x"))
		require.Equal(t, sink.Failure{Reason: "errors are not shown here", Suppressed: true}, failure(t, err))
		require.Equal(t, StatusSuppressed, r.Status)
		require.Zero(t, f.calls)
		_, _, err = exchange(t, f.t, answer("x"))
		require.NoError(t, err)
		require.Equal(t, []string{"x"}, f.texts())
	}
}

func TestFormatAndPrefixAreThoseOfTheAccount(t *testing.T) {
	for _, c := range []struct {
		traits text.Format
		change func(*Account)
		want   string
	}{
		{"", func(*Account) {}, "**b** & c"},
		{text.SlackMrkdwn, func(*Account) {}, "*b* &amp; c"},
		{text.SlackMrkdwn, func(a *Account) { a.Format = text.Plain }, "b & c"},
		{text.SlackMrkdwn, func(a *Account) { a.Prefix = PrefixBoldBracket }, "*[front]* *b* &amp; c"},
		{text.TelegramHTML, func(a *Account) { a.Prefix = PrefixBracket }, "[front] <b>b</b> &amp; c"},
		{text.Plain, func(a *Account) { a.Prefix = PrefixOff }, "b & c"},
	} {
		f := newFixture(t, adapter.Traits{Format: c.traits}, c.change)
		_, _, err := exchange(t, f.t, answer("**b** & c"))
		require.NoError(t, err)
		require.Equal(t, []string{c.want}, f.texts())
	}
}

func TestSpokenTextIsNotSplit(t *testing.T) {
	f := newFixture(t, adapter.Traits{Format: text.Plain, Limit: text.Limit{Max: 10}, Spoken: true})
	_, _, err := exchange(t, f.t, answer("one two"))
	require.NoError(t, err)
	require.Equal(t, []string{"one two"}, f.texts())
	long := answer("one two three")
	long.DeliveryID = "d-2"
	_, raw, err := exchange(t, f.t, long)
	require.Equal(t, sink.Failure{Reason: ReasonTooLong, Final: true}, failure(t, err))
	require.Nil(t, raw)
	require.Equal(t, 1, f.calls)
}

func TestLastChunkAsksForApproval(t *testing.T) {
	f := newFixture(t, four())
	d := answer(words)
	d.Channel = topics.OriginRoute(topics.EncodeOrigin(room), topics.Raw(`{"gate_id":"g-1","tool":"book","expires_ms":1700000000000}`))
	_, _, err := exchange(t, f.t, d)
	require.NoError(t, err)
	for _, c := range f.accepted[:4] {
		require.Nil(t, c.Ask)
	}
	require.Equal(t, &adapter.Ask{GateID: "g-1", Tool: "book", ExpiresMS: 1700000000000}, f.accepted[4].Ask)
}

func TestDeliveryWithoutOriginIsRefused(t *testing.T) {
	f := newFixture(t, four())
	for _, channel := range []topics.Raw{nil, topics.Raw(`{}`), topics.Raw(`{"origin":{"channel":"slack"}}`), topics.Raw(`{"origin":7}`)} {
		d := answer("x")
		d.Channel = channel
		_, _, err := exchange(t, f.t, d)
		require.Equal(t, sink.Failure{Reason: ReasonNoOrigin, Final: true}, failure(t, err))
	}
	require.Zero(t, f.calls)
}

func TestAttemptStopsBeforeItsLeaseEnds(t *testing.T) {
	f := newFixture(t, four())
	ctx, cancel := context.WithTimeout(t.Context(), reserve-time.Second)
	defer cancel()
	raw, err := f.t.Exchange(ctx, sink.Attempt{Delivery: answer(words)})
	require.Equal(t, sink.Failure{Reason: ReasonContinues}, failure(t, err))
	require.Equal(t, chunksOfWords[:1], f.texts(), "an attempt sends a chunk at least")
	d := answer(words)
	d.Progress = raw
	_, _, err = exchange(t, f.process(t), d)
	require.NoError(t, err)
	require.Equal(t, chunksOfWords, f.texts())
}

func TestReportFitsIntoTheProgressOfADelivery(t *testing.T) {
	r := rendering{format: text.TelegramHTML, prefix: PrefixBoldBracket, limit: text.Limit{Max: 4096}}.report(nil)
	r.Chunks = 10_000
	for range r.Chunks {
		r = r.accept(adapter.Sent{ID: strings.Repeat(`"`, maxID)})
	}
	raw := r.raw()
	require.Less(t, len(raw), delivery.MaxProgress)
	got, ok := ReadReport(raw)
	require.True(t, ok)
	require.Equal(t, r, got)
	require.Len(t, got.previous(), r.Chunks)
	require.Equal(t, r.Sent[len(r.Sent)-1], got.previous()[r.Chunks-1])
	require.Empty(t, Report{Chunks: 1}.accept(adapter.Sent{ID: strings.Repeat("x", maxID+1)}).Sent[0].ID)
	bad, ok := ReadReport(Report{Status: StatusPartial, Chunks: 1}.accept(adapter.Sent{ID: "a\xff\x00b"}).raw())
	require.True(t, ok)
	require.Equal(t, "ab", bad.Sent[0].ID)
}

func TestBadProgressIsIgnored(t *testing.T) {
	for _, progress := range []string{
		`{}`, `[]`, `{"status":"partial","accepted":-1}`, `{"status":"partial","accepted":2,"chunks":1}`,
		`{"status":"partial","accepted":0,"chunks":2,"sent":[{"id":"a"}]}`, `{"status":"partial","chunks":5}`,
	} {
		f := newFixture(t, four())
		d := answer(words)
		d.Progress = topics.Raw(progress)
		_, _, err := exchange(t, f.t, d)
		require.NoError(t, err)
		require.Equal(t, chunksOfWords, f.texts(), progress)
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	live := Fixed(&Settings{})
	p := &platform{}
	for name, accounts := range map[string][]AccountAdapter{
		"no adapter": {{Name: "main"}}, "no name": {{Adapter: p}}, "two": {{"main", p}, {"main", p}},
	} {
		_, err := NewTransport("front", live, accounts, TransportConfig{})
		require.ErrorIs(t, err, ErrConfig, name)
	}
	_, err := NewTransport("front", nil, nil, TransportConfig{})
	require.ErrorIs(t, err, ErrConfig)
	_, err = NewTransport("front", live, nil, TransportConfig{SendTimeout: -1})
	require.ErrorIs(t, err, ErrConfig)
}
