package voice

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/topics"
)

// audioMark is how the synthesizer of these tests begins its audio; what follows is the text that is spoken.
const audioMark = "RIFF\x00\xff"

// synthesizer is a Synthesizer whose audio contains the text.
type synthesizer struct {
	mu     sync.Mutex
	spoken []string
	make   func(ctx context.Context, text string) (io.ReadCloser, error) // nil: the audio of the text
}

func (s *synthesizer) Synthesize(ctx context.Context, text string) (io.ReadCloser, error) {
	s.mu.Lock()
	s.spoken = append(s.spoken, text)
	s.mu.Unlock()
	if s.make != nil {
		return s.make(ctx, text)
	}
	return io.NopCloser(strings.NewReader(audioMark + text)), nil
}

// media is a media service: each call has a WebSocket, to which its audio is written and on which the person listens.
type media struct {
	url     string
	sockets chan *ws.Conn
}

func newMedia(t *testing.T) *media {
	m := &media{sockets: make(chan *ws.Conn, 1)}
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := ws.Accept(w, r, nil)
		if err != nil {
			return
		}
		m.sockets <- conn
		<-done
		_ = conn.CloseNow()
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(done) })
	m.url = "ws" + strings.TrimPrefix(server.URL, "http")
	return m
}

// person is one end of a call, whose other end is the Player.
type person struct {
	t    *testing.T
	conn *ws.Conn
}

type player struct{ conn *ws.Conn }

func (p player) Play(ctx context.Context, audio []byte) error {
	if err := p.conn.Write(ctx, ws.MessageBinary, audio); err != nil {
		return ErrEnded
	}
	return nil
}

// call begins a call and returns the person in it.
func (m *media) call(t *testing.T, calls *Calls, id, caller string) (*Call, person) {
	t.Helper()
	conn, _, err := ws.Dial(t.Context(), m.url, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.CloseNow() })
	c, err := calls.Begin(id, Caller{ID: caller, Name: caller}, player{<-m.sockets})
	require.NoError(t, err)
	t.Cleanup(c.End)
	return c, person{t, conn}
}

// hears returns the text of the next audio.
func (p person) hears() string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), platformtest.WaitFor)
	defer cancel()
	kind, audio, err := p.conn.Read(ctx)
	require.NoError(p.t, err)
	require.Equal(p.t, ws.MessageBinary, kind)
	text, ok := bytes.CutPrefix(audio, []byte(audioMark))
	require.True(p.t, ok)
	return string(text)
}

func newCalls(t *testing.T, s Synthesizer, r adapter.Receiver, change ...func(*Config)) *Calls {
	t.Helper()
	c := Config{Account: "main", Synthesizer: s}
	c = platformtest.With(c, change...)
	calls, err := New(c, r)
	require.NoError(t, err)
	t.Cleanup(calls.Close)
	return calls
}

func chunk(to topics.Origin, key, text string) adapter.Chunk {
	return adapter.Chunk{To: to, Text: text, Format: "plain_text", Key: key, Count: 1}
}
