package processors_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

func answer(c *processors.Context, in codec.Decoded[asked]) error {
	text := in.Value.Text
	if in.Tombstone() {
		text = "gone"
	}
	return processors.Emit(c, answers, c.Key(), text, goka.Headers{topics.HeaderID: []byte(c.CauseID())})
}

func sessionOf(a asked) *string { return a.Session }

func TestHandlerGetsValuesAndTombstones(t *testing.T) {
	r := newRig(t, answer)
	r.pipe("s-1", []byte(`{"text":"hello"}`), nil)
	r.pipe("s-1", nil, nil)
	for _, want := range []string{"hello", "gone"} {
		key, got, ok := r.answers.Next()
		require.True(t, ok)
		require.Equal(t, "s-1", key)
		require.Equal(t, want, got.(codec.Decoded[string]).Value)
	}
	r.none(r.dlq)
}

func TestPoisonIsDeadLetteredAsItCame(t *testing.T) {
	r := newRig(t, answer)
	r.pipe("s-1", []byte(`{"text":`), goka.Headers{"trace": []byte("t-9"), "error.reason": []byte("an older one")})
	r.pipe("s-1", []byte{}, nil)
	r.pipe("s-1", []byte(`{"text":"after"}`), nil)

	l := r.letter()
	require.Equal(t, "s-1", l.key)
	require.Equal(t, `{"text":`, string(l.value))
	require.Equal(t, "t-9", string(l.headers["trace"]))
	require.Equal(t, askName, string(l.headers["error.source.topic"]))
	require.Equal(t, "0", string(l.headers["error.source.partition"]))
	require.Equal(t, "0", string(l.headers["error.source.offset"]))
	require.Equal(t, "floor", string(l.headers["error.group"]))
	require.NotEmpty(t, l.headers["error.reason"])
	require.NotContains(t, string(l.headers["error.reason"]), "older")
	require.NotContains(t, l.headers, "error.truncated")

	empty := r.letter()
	require.NotNil(t, empty.value)
	require.Empty(t, empty.value)
	require.Equal(t, "1", string(empty.headers["error.source.offset"]))

	_, got, ok := r.answers.Next()
	require.True(t, ok, "what comes after poison flows")
	require.Equal(t, "after", got.(codec.Decoded[string]).Value)
}

func TestDeadLettersOfAConfidentialTopicTellNothing(t *testing.T) {
	bad := func(c *processors.Context, in codec.Decoded[asked]) error {
		switch {
		case in.Value.Text == "panic":
			panic(in.Value.Text)
		case in.Value.Text == "hold":
			return c.DeadLetterOther(c.Letter("no such floor"))
		default:
			return c.DeadLetter("no such floor")
		}
	}
	r := newRigOf(t, []processors.Source{
		processors.Input(asks, bad, processors.KeyedBy(sessionOf), processors.Confidential[asked]()),
	})
	secret := goka.Headers{"authorization": []byte("s3cret")}
	for _, c := range []struct{ key, value, reason string }{
		{"s-1", `{"text":"s3cret"`, "JSON"},
		{"s-1", `{"text":"s3cret"}`, "session id is missing"},
		{"s-1", `{"session":"s-1","text":"s3cret"}`, "no such floor"},
		{"s-1", `{"session":"s-1","text":"hold","x":"s3cret"}`, "no such floor"},
		{"s-1", `{"session":"s-1","text":"panic","x":"s3cret"}`, "panic"},
		{"other", `{"session":"s-1","text":"s3cret"}`, "no such floor"}, // by the loop topic
		{"other", `{"session":"s\u0000","text":"s3cret"}`, "NUL"},
	} {
		r.pipe(c.key, []byte(c.value), secret)
		l := r.letter()
		require.Nil(t, l.value, c.value)
		require.Equal(t, c.key, l.key)
		require.Contains(t, string(l.headers["error.reason"]), c.reason)
		require.Equal(t, askName, string(l.headers["error.source.topic"]))
		require.Equal(t, strconv.Itoa(len(c.value)), string(l.headers["error.truncated"]))
		for name, value := range l.headers {
			require.NotContains(t, name+string(value), "s3cret")
		}
	}
	r.pipe("", nil, secret)
	require.NotContains(t, r.letter().headers, "error.truncated", "a tombstone has nothing to withhold")
}

func TestUnusableSessionIDsAreDeadLettered(t *testing.T) {
	r := newRig(t, answer)
	for key, reason := range map[string]string{
		"":                         "session id is missing",
		"a\x00b":                   "session id contains NUL",
		"a\xffb":                   "session id is not UTF-8",
		"__offset":                 "session id is reserved",
		strings.Repeat("k", 1<<11): "session id is longer than 1024 bytes",
	} {
		r.pipe(key, []byte(`{"text":"x"}`), nil)
		l := r.letter()
		require.Equal(t, key, l.key)
		require.Equal(t, reason, string(l.headers["error.reason"]))
	}
	r.none(r.answers)
}

func TestSessionIsReadFromTheValueWhereItStandsThere(t *testing.T) {
	r := newRigOf(t, []processors.Source{processors.Input(asks, answer, processors.KeyedBy(sessionOf))})
	r.pipe("s-1", []byte(`{"text":"x"}`), nil)
	require.Equal(t, "session id is missing", string(r.letter().headers["error.reason"]))

	r.pipe("s-1", nil, nil) // a tombstone's session is its key
	key, _, ok := r.answers.Next()
	require.True(t, ok)
	require.Equal(t, "s-1", key)
}

func TestRecordUnderAWrongKeyGoesOnceThroughTheLoop(t *testing.T) {
	type seen struct {
		key, topic, cause string
		offset            int64
		at                time.Time
		headers           goka.Headers
	}
	var got []seen
	h := func(c *processors.Context, in codec.Decoded[asked]) error {
		got = append(got, seen{c.Key(), c.Topic(), c.CauseID(), c.Offset(), c.Timestamp(), c.Headers()})
		if in.Value.Text == "bad" {
			return c.DeadLetter("no such floor")
		}
		return answer(c, in)
	}
	r := newRigOf(t, []processors.Source{processors.Input(asks, h, processors.KeyedBy(sessionOf))})
	raw := []byte(`{"session":"s-1","text":"hello"}`)
	r.pipe("someone", raw, goka.Headers{"trace": []byte("t-9")})

	require.Len(t, got, 1)
	require.Equal(t, "s-1", got[0].key)
	require.Equal(t, askName, got[0].topic)
	require.Zero(t, got[0].offset)
	require.True(t, stamp.Equal(got[0].at))
	require.Equal(t, goka.Headers{"trace": []byte("t-9")}, got[0].headers)
	l, ok := next(r.loop)
	require.True(t, ok)
	require.Equal(t, raw, l.value)
	require.Equal(t, "s-1", l.key)

	r.pipe("", []byte(`{"session":"s-1","text":"bad"}`), nil)
	require.Len(t, got, 2)
	rejected := r.letter()
	require.Empty(t, rejected.key, "the original key")
	require.Equal(t, askName, string(rejected.headers["error.source.topic"]))
	require.Equal(t, "1", string(rejected.headers["error.source.offset"]))
	require.NotContains(t, rejected.headers, "turntable.source.topic")
}

func TestCauseIsTheSameByWayOfTheLoop(t *testing.T) {
	var causes []string
	h := func(c *processors.Context, _ codec.Decoded[asked]) error {
		causes = append(causes, c.CauseID())
		return nil
	}
	raw := []byte(`{"session":"s-1","text":"hello"}`)
	newRigOf(t, []processors.Source{processors.Input(asks, h, processors.KeyedBy(sessionOf))}).pipe("x", raw, nil)
	newRigOf(t, []processors.Source{processors.Input(asks, h, processors.KeyedBy(sessionOf))}).pipe("s-1", raw, nil)
	require.Len(t, causes, 2)
	require.Equal(t, causes[0], causes[1])
	require.Len(t, causes[0], 64)
}

func TestCauseIsTheRecordsOwnIDWhereItIsUsable(t *testing.T) {
	var causes []string
	h := func(c *processors.Context, _ codec.Decoded[asked]) error {
		causes = append(causes, c.CauseID())
		return nil
	}
	r := newRig(t, h)
	raw := []byte(`{"text":"hello"}`)
	for _, id := range []string{"turn-1/2/call/0", "", "a\nb", "\xff", strings.Repeat("x", 257)} {
		r.pipe("s-1", raw, goka.Headers{topics.HeaderID: []byte(id)})
	}
	require.Equal(t, "turn-1/2/call/0", causes[0])
	for _, hash := range causes[1:] {
		require.Len(t, hash, 64)
	}
	require.NotEqual(t, causes[1], causes[2], "the same bytes at another offset are another record")
}

func TestRecordInAForeignPartitionGoesThroughTheLoop(t *testing.T) {
	home := false
	owns := func(string) bool { return home }
	r := newRig(t, answer, underRuntime(owns, nil))
	r.pipe("s-1", []byte(`{"text":"x"}`), nil)

	// The loop of this rig ends in the same partition.
	l := r.letter()
	require.Contains(t, string(l.headers["error.reason"]), "does not belong to the partition")
	require.Equal(t, askName, string(l.headers["error.source.topic"]))
	r.none(r.answers)

	home = true
	r.pipe("s-1", []byte(`{"text":"x"}`), nil)
	_, _, ok := r.answers.Next()
	require.True(t, ok)
}

func TestTombstoneInAForeignPartitionStaysOne(t *testing.T) {
	calls := 0
	owns := func(string) bool { calls++; return calls > 1 }
	r := newRig(t, answer, underRuntime(owns, nil))
	r.pipe("s-1", nil, nil)
	_, got, ok := r.answers.Next()
	require.True(t, ok)
	require.Equal(t, "gone", got.(codec.Decoded[string]).Value)
}

func TestForeignRecordsOnTheLoopAreDeadLettered(t *testing.T) {
	r := newRig(t, answer)
	r.gt.Consume("floor-loop", "s-1", []byte("x"))
	require.Contains(t, string(r.letter().headers["error.reason"]), "lacks its source coordinates")
	r.gt.Consume("floor-loop", "s-1", []byte("x"), withHeaders(goka.Headers{
		"turntable.source.topic": []byte("elsewhere"), "turntable.source.partition": []byte("3"),
		"turntable.source.offset": []byte("9"), "turntable.source.timestamp": []byte("1"),
	}))
	l := r.letter()
	require.Contains(t, string(l.headers["error.reason"]), "not an input of the group")
	require.Equal(t, "3", string(l.headers["error.source.partition"]))
}

func TestNullKeyStaysNullInTheDeadLetter(t *testing.T) {
	null := goka.Headers{runtimeapi.HeaderNullKey: nil}
	r := newRig(t, answer, underRuntime(everyKey, nil))
	r.pipe("", []byte(`{"text":"x"}`), null)
	require.Contains(t, r.letter().headers, runtimeapi.HeaderNullKey, "the producer makes it a null key")
	r.pipe("", []byte(`{"text":"x"}`), nil)
	require.NotContains(t, r.letter().headers, runtimeapi.HeaderNullKey)

	stock := newRig(t, answer)
	stock.pipe("", []byte(`{"text":"x"}`), null)
	require.NotContains(t, stock.letter().headers, runtimeapi.HeaderNullKey, "a stock producer would send it")
}

func TestNullKeySurvivesTheLoop(t *testing.T) {
	h := func(c *processors.Context, _ codec.Decoded[asked]) error { return c.DeadLetter("no") }
	r := newRigOf(t, []processors.Source{processors.Input(asks, h, processors.KeyedBy(sessionOf))},
		underRuntime(everyKey, nil))
	r.pipe("", []byte(`{"session":"s-1"}`), goka.Headers{runtimeapi.HeaderNullKey: nil})
	require.Contains(t, r.letter().headers, runtimeapi.HeaderNullKey)
	r.pipe("", []byte(`{"session":"s-1"}`), nil)
	require.NotContains(t, r.letter().headers, runtimeapi.HeaderNullKey)
}
