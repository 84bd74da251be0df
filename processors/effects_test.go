package processors_test

import (
	"strings"
	"testing"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
)

func TestPanicOfAHandlerIsDeadLetteredWithoutItsTextAndWithoutEffects(t *testing.T) {
	h := func(c *processors.Context, in codec.Decoded[asked]) error {
		if err := answer(c, in); err != nil {
			return err
		}
		if in.Value.Text == "secret" {
			panic("cannot handle " + in.Value.Text)
		}
		if in.Value.Text == "index" {
			_ = in.Raw[len(in.Raw)]
		}
		return c.SetValue(in.Value.Text)
	}
	r := newRig(t, h)
	r.pipe("s-1", []byte(`{"text":"secret"}`), nil)
	reason := string(r.letter().headers["error.reason"])
	require.Regexp(t, `^panic: string in .*TestPanicOfAHandler.* \(effects_test\.go:\d+\)$`, reason)
	require.NotContains(t, reason, "secret")
	r.none(r.answers)
	require.Nil(t, r.gt.TableValue("floor-table", "s-1"))

	r.pipe("s-1", []byte(`{"text":"index"}`), nil)
	require.Regexp(t, `^panic: runtime\.\w+ in .*TestPanicOfAHandler.* \(effects_test\.go:\d+\)$`,
		string(r.letter().headers["error.reason"]))

	r.pipe("s-1", []byte(`{"text":"fine"}`), nil)
	require.NotNil(t, r.gt.TableValue("floor-table", "s-1"))
}

func TestRowIsWrittenAfterTheOutputs(t *testing.T) {
	var order []string
	h := func(c *processors.Context, in codec.Decoded[asked]) error {
		require.NoError(t, c.SetValue("row"))
		require.ErrorIs(t, c.SetValue("again"), processors.ErrRowWritten)
		require.ErrorIs(t, c.Delete(), processors.ErrRowWritten)
		require.ErrorIs(t, c.SetValue(nil), processors.ErrNilRow)
		require.Nil(t, c.Value(), "the row as the callback found it")
		require.NoError(t, c.DeadLetter("first reason"))
		require.NoError(t, c.DeadLetter("second reason"))
		return answer(c, in)
	}
	r := newRig(t, h, underRuntime(everyKey, func(ctx goka.Context) goka.Context { return tracing{ctx, &order} }))
	r.pipe("s-1", []byte(`{"text":"x"}`), nil)
	require.Equal(t, []string{"floor-dlq", "answers", "row"}, order)
	require.Equal(t, "first reason", string(r.letter().headers["error.reason"]))
	r.none(r.dlq)
}

func TestRowIsRemoved(t *testing.T) {
	h := func(c *processors.Context, in codec.Decoded[asked]) error {
		if in.Tombstone() {
			return c.Delete()
		}
		return c.SetValue(in.Value.Text)
	}
	r := newRig(t, h)
	r.pipe("s-1", []byte(`{"text":"x"}`), nil)
	require.Equal(t, "x", r.gt.TableValue("floor-table", "s-1").(codec.Decoded[string]).Value)
	r.pipe("s-1", nil, nil)
	require.Nil(t, r.gt.TableValue("floor-table", "s-1"))
}

func TestContextIsDeadAfterTheCallback(t *testing.T) {
	var kept *processors.Context
	r := newRig(t, func(c *processors.Context, _ codec.Decoded[asked]) error {
		kept = c
		return nil
	})
	r.pipe("s-1", []byte(`{"text":"x"}`), nil)
	require.ErrorIs(t, kept.SetValue("x"), processors.ErrReturned)
	require.ErrorIs(t, kept.Delete(), processors.ErrReturned)
	require.ErrorIs(t, kept.Emit(answers.Stream(), "s-1", "x", nil), processors.ErrReturned)
	require.ErrorIs(t, processors.Emit(kept, answers, "s-1", "x", nil), processors.ErrReturned)
	require.ErrorIs(t, kept.DeadLetter("x"), processors.ErrReturned)
	require.ErrorIs(t, kept.DeadLetterOther(processors.Letter{}), processors.ErrReturned)
	require.Nil(t, kept.Value())
	require.Zero(t, kept.Now())
	require.Equal(t, "s-1", kept.Key())
	r.none(r.answers)
}

func TestHeldRecordIsDeadLetteredWithItsOwnCoordinates(t *testing.T) {
	var held processors.Letter
	h := func(c *processors.Context, in codec.Decoded[asked]) error {
		if in.Value.Text == "hold" {
			held = c.Letter("the turn ended without it")
			held.Value = append([]byte(nil), held.Value...)
			return nil
		}
		return c.DeadLetterOther(held)
	}
	r := newRig(t, h)
	r.pipe("s-1", []byte(`{"text":"hold"}`), nil)
	r.pipe("s-1", []byte(`{"text":"end"}`), nil)
	l := r.letter()
	require.Equal(t, "0", string(l.headers["error.source.offset"]))
	require.Equal(t, `{"text":"hold"}`, string(l.value))
	require.Equal(t, "the turn ended without it", string(l.headers["error.reason"]))
}

func TestOversizedDeadLetterIsCut(t *testing.T) {
	r := newRig(t, answer)
	big := []byte(strings.Repeat("x", 2<<20))
	r.pipe("s-1", big, goka.Headers{"trace": []byte("t-9")})
	l := r.letter()
	require.Less(t, len(l.value), 1<<20)
	require.Greater(t, len(l.value), 1<<20-1<<10)
	require.Equal(t, "2097152", string(l.headers["error.truncated"]))
	require.Equal(t, "t-9", string(l.headers["trace"]))
}

func TestEmitRefusesWhatTheBrokerWould(t *testing.T) {
	var got error
	r := newRig(t, func(c *processors.Context, _ codec.Decoded[asked]) error {
		require.Equal(t, 1<<20, c.MaxRecordBytes())
		got = processors.Emit(c, answers, c.Key(), strings.Repeat("x", 1<<20), nil)
		return nil
	})
	r.pipe("s-1", []byte(`{"text":"x"}`), nil)
	require.ErrorIs(t, got, processors.ErrTooLarge)
	r.none(r.answers)
	r.none(r.dlq)
}

func TestRecordWhoseAnswerIsTooLargeIsDeadLettered(t *testing.T) {
	r := newRig(t, func(c *processors.Context, _ codec.Decoded[asked]) error {
		return processors.Emit(c, answers, c.Key(), strings.Repeat("x", 1<<20), nil)
	})
	r.pipe("s-1", []byte(`{"text":"x"}`), nil)
	require.Contains(t, string(r.letter().headers["error.reason"]), "too large")
}

func TestPartsAreWrittenAheadOfTheRowAndRemovedBehindIt(t *testing.T) {
	var order []string
	h := func(c *processors.Context, in codec.Decoded[asked]) error {
		require.True(t, c.HasParts())
		require.NoError(t, c.DeletePart(1))
		require.NoError(t, c.SetPart(2, []byte("two")))
		require.ErrorIs(t, c.SetPart(3, nil), processors.ErrNilRow)
		require.ErrorIs(t, c.SetPart(3, make([]byte, c.MaxRecordBytes())), processors.ErrTooLarge)
		found, err := c.Part(2)
		require.NoError(t, err)
		require.Nil(t, found, "the part as the callback found it")
		require.NoError(t, c.SetValue("row"))
		return answer(c, in)
	}
	r := newRig(t, h, underRuntime(everyKey, func(ctx goka.Context) goka.Context { return tracing{ctx, &order} }))
	r.pipe("s-1", []byte(`{"text":"x"}`), nil)
	require.Equal(t, []string{"answers", "part 2", "row", "no part 1"}, order)
}

func TestPlainProcessorHasNoParts(t *testing.T) {
	called := false
	h := func(c *processors.Context, _ codec.Decoded[asked]) error {
		called = true
		require.False(t, c.HasParts())
		require.ErrorIs(t, c.SetPart(1, []byte("x")), processors.ErrNoParts)
		require.ErrorIs(t, c.DeletePart(1), processors.ErrNoParts)
		_, err := c.Part(1)
		require.ErrorIs(t, err, processors.ErrNoParts)
		return nil
	}
	newRig(t, h).pipe("s-1", []byte(`{"text":"x"}`), nil)
	require.True(t, called)
}
