package whole

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/voice"
	"github.com/turntable-streams/turntable/topics"
)

// synthesizer makes audio of a text that says what the text was.
type synthesizer struct{}

func (synthesizer) Synthesize(_ context.Context, text string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("audio: " + text)), nil
}

// line is the audio of a call.
type line struct {
	mu     sync.Mutex
	played []string
}

func (l *line) Play(_ context.Context, audio []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.played = append(l.played, string(audio))
	return nil
}

func (l *line) heard() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.played...)
}

// A person asks in a call, and another one of the same person is open: the result is spoken in the first. A result for a call that
// has ended is a dead delivery, and is neither spoken elsewhere nor posted as text.
func TestVoiceResultIsSpoken(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g)
		d.configure("slack", "voice")
		d.holdBack()
		spoken, err := voice.New(voice.Config{Account: "main", Synthesizer: synthesizer{}}, d.bridge)
		require.NoError(t, err)
		t.Cleanup(spoken.Close)
		d.accounts = append(d.accounts, channel.AccountAdapter{Name: "main", Adapter: spoken})
		d.start()
		ada := voice.Caller{ID: "+491234", Name: "Ada"}
		lines := map[string]*line{"CA1": {}, "CA2": {}, "CA3": {}}
		open := map[string]*voice.Call{}
		for id, l := range lines {
			open[id], err = spoken.Begin(id, ada, l)
			require.NoError(t, err)
		}
		require.NoError(t, open["CA1"].Heard(t.Context(), voice.Utterance{ID: "1", Text: "delegate read the inbox"}))
		require.NoError(t, open["CA3"].Heard(t.Context(), voice.Utterance{ID: "1", Text: "delegate read the calendar"}))
		chat := dm("slack", "ada")
		d.say(chat, "delegate count the boats")
		d.gets(chat, dispatched)
		for _, id := range []string{"CA1", "CA3"} {
			d.eventually(func() bool { return len(lines[id].heard()) == 1 })
		}
		d.inFlight(3)
		open["CA3"].End()
		d.release()
		d.eventually(func() bool { return len(lines["CA1"].heard()) == 2 })
		d.gets(chat, dispatched, "result of count the boats")
		var dead []topics.DeadDelivery
		d.eventually(func() bool {
			dead = valuesOf(d.world, d.catalogs[d.front].DeliveryDLQ)
			return len(dead) > 0
		})
		require.Equal(t, "refused: "+voice.ReasonEnded, dead[0].Reason)
		require.Contains(t, dead[0].Delivery.Body.String(), "read the calendar")
		require.Equal(t, []string{"audio: " + dispatched, "audio: result of read the inbox"}, lines["CA1"].heard())
		require.Empty(t, lines["CA2"].heard())
		require.Equal(t, []string{"audio: " + dispatched}, lines["CA3"].heard())
		d.only(chat)
	})
}
