package websocket

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
)

// Nothing is read from the topics for event IDs that no server has signed.
func TestForgedEventIDsAreNotRead(t *testing.T) {
	other := newFixture(t, func(c *Config) { c.ResumeKeys = [][]byte{[]byte("another key of at least 32 bytes.")} })
	b := other.open().subscribe("s")
	other.take("message-input", "s", 1, `"one"`)
	foreign := b.next().id
	unsigned := foreign[:strings.LastIndexByte(foreign, '~')]
	own := newFixture(t)
	b = own.open().subscribe("s")
	own.take("message-input", "s", 1, `"one"`)
	valid := b.next().id

	s := newFixture(t)
	reads := &fakeFollower{}
	s.setFollower(reads)
	for name, id := range map[string]string{
		"another key": foreign, "no signature": unsigned, "empty signature": unsigned + "~",
		"changed":                strings.Replace(valid, "1/3/1/e", "1/3/0/e", 1),
		"another ID's signature": unsigned + valid[strings.LastIndexByte(valid, '~'):][:10],
		"too long":               valid + strings.Repeat("x", maxEventID),
	} {
		require.NotEqual(t, valid, id, name)
		s.open().resume("s", id).require(`"complete":false,"replayed":0,"reason":"` + reasonUnknown)
	}
	s.open().resume("t", valid).require(`"complete":false,"replayed":0,"reason":"` + reasonUnknown)
	for i := range 100 {
		s.open().resume("ghost-"+strconv.Itoa(i), unsigned+"~"+strconv.Itoa(i)).require(`"complete":false`)
	}
	require.Zero(t, reads.count())
	s.open().resume("s", valid).require(`"complete":true`)
	require.Equal(t, int(feedCount)-1, reads.count(), "one for each feed")
}

func TestWithoutAKeyServersSignWithTheirOwn(t *testing.T) {
	none := func(c *Config) { c.ResumeKeys = nil }
	first, second := newFixture(t, none), newFixture(t, none)
	b := first.open().subscribe("s")
	first.take("message-input", "s", 1, `"one"`)
	last := b.next().id
	second.setFollower(&fakeFollower{})
	second.open().resume("s", last).require(`"complete":false`)
	first.open().resume("s", last).require(`"complete":true`)
}

func TestResumeKeyCanBeReplaced(t *testing.T) {
	newer := []byte("the newer key, of at least 32 bytes")
	old, rotating := newFixture(t), newFixture(t, func(c *Config) { c.ResumeKeys = [][]byte{newer, resumeKey} })
	b := old.open().subscribe("s")
	old.take("message-input", "s", 1, `"one"`)
	rotating.setFollower(&fakeFollower{})
	rotating.open().resume("s", b.next().id).require(`"complete":true`)
	rotating.take("message-input", "s", 2, `"two"`)
	b = rotating.open().subscribe("t")
	rotating.take("message-input", "t", 3, `"three"`)
	_, ok := newSigner("pilot", [][]byte{newer}).verify("t", b.next().id)
	require.True(t, ok, "the first key signs")
	_, err := New("pilot", Config{ResumeKeys: [][]byte{[]byte("short")}})
	require.ErrorIs(t, err, ErrConfig)
	require.NotContains(t, err.Error(), "short,")
}

// byName authenticates a caller by a header.
func byName(r *http.Request) (auth.Caller, error) {
	return auth.Caller{UserID: r.Header.Get("X-Name")}, nil
}

func (s *fixture) openAs(name string) *browser {
	s.t.Helper()
	b, _, err := s.dial("/ws", "X-Name", name)
	require.NoError(s.t, err)
	return b
}

// A caller with many sessions, or with large ones, evicts its own frames only.
func TestCallerDoesNotEvictTheFramesOfOthers(t *testing.T) {
	s := newFixture(t, func(c *Config) { c.Authenticate, c.Replay = byName, Replay{Sessions: 10, TotalBytes: 20_000} })
	honest := s.openAs("honest").subscribe("mine")
	s.take("message-input", "mine", 1, `"one"`)
	last := honest.next().id
	s.take("message-input", "mine", 2, `"two"`)
	require.NoError(t, honest.CloseNow())
	require.Eventually(t, func() bool { return s.subscribers("mine") == 0 }, waitLimit, time.Millisecond)

	for i := range 50 {
		session := "hostile-" + strconv.Itoa(i)
		b := s.openAs("hostile").subscribe(session)
		for n := range 5 {
			s.take("message-input", session, int64(100*i+n), `"`+strings.Repeat("x", 1000)+`"`)
		}
		require.NoError(t, b.CloseNow())
		require.Eventually(t, func() bool { return s.subscribers(session) == 0 }, waitLimit, time.Millisecond)
	}
	s.openAs("honest").resume("mine", last).require(`"two"`, `"complete":true,"replayed":1`)
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	require.LessOrEqual(t, s.hub.bytes, 20_000)
	require.Equal(t, 9, s.hub.idle, "without the one that was resumed")
	require.Len(t, s.hub.accounts.byName, 2)
	used := 0
	for _, o := range s.hub.accounts.byName {
		used += o.bytes
	}
	require.Equal(t, s.hub.bytes, used)
}
