package email

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
)

// store is an IMAP server with one mailbox.
type store struct {
	*imapserver.Server
	user  *imapmemserver.User
	port  int
	mu    sync.Mutex
	conns []net.Conn
}

func storing(t *testing.T, change ...func(*imapserver.Options)) *store {
	t.Helper()
	s := &store{user: imapmemserver.NewUser("agent", "secret")}
	require.NoError(t, s.user.Create("INBOX", nil))
	memory := imapmemserver.New()
	memory.AddUser(s.user)
	o := &imapserver.Options{
		NewSession: func(c *imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.conns = append(s.conns, c.NetConn())
			return memory.NewSession(), nil, nil
		},
		Caps: imap.CapSet{imap.CapIMAP4rev1: {}, imap.CapIdle: {}}, InsecureAuth: true, Logger: log.New(io.Discard, "", 0),
	}
	for _, f := range change {
		f(o)
	}
	s.Server = imapserver.New(o)
	var l net.Listener
	l, s.port = listen(t)
	var running sync.WaitGroup
	running.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		_ = s.Close()
		running.Wait()
	})
	return s
}

func (s *store) add(t *testing.T, mail string) {
	t.Helper()
	_, err := s.user.Append("INBOX", literal{strings.NewReader(mail)}, &imap.AppendOptions{})
	require.NoError(t, err)
}

type literal struct{ *strings.Reader }

func (l literal) Size() int64 { return l.Reader.Size() }

func (s *store) unseen(t *testing.T) uint32 {
	t.Helper()
	status, err := s.user.Status("INBOX", &imap.StatusOptions{NumUnseen: true})
	require.NoError(t, err)
	return *status.NumUnseen
}

func (s *store) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// cut closes the open connections.
func (s *store) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
}

// read runs a Mailbox until the test ends.
func read(t *testing.T, s *store, r *inbox, change ...func(*MailboxConfig)) *clock.Fake {
	t.Helper()
	fake := clock.NewFake(noon)
	c := MailboxConfig{Acceptance: accepting(), Host: "127.0.0.1", Port: s.port, Security: NoTLS, Username: "agent", Password: "secret", Clock: fake}
	c = platformtest.With(c, change...)
	m, err := NewMailbox(c, r)
	require.NoError(t, err)
	m.backoff = backoff.NewConstantBackOff(time.Second)
	platformtest.Run(t, func(ctx context.Context) error { return m.Run(ctx) })
	return fake
}

func (i *inbox) eventually(t *testing.T, texts ...string) {
	t.Helper()
	require.Eventually(t, func() bool { return len(i.All()) >= len(texts) }, platformtest.WaitFor, platformtest.Tick)
	var got []string
	for _, in := range i.All() {
		got = append(got, in.Text)
	}
	require.Equal(t, texts, got)
}

// failures are the entries about connections and mail that were not read.
func failures(o *observer.ObservedLogs) *observer.ObservedLogs {
	return o.FilterMessageSnippet("cannot be read")
}

func TestMailboxPassesUnseenMailOnInOrderAndNoticesNewMail(t *testing.T) {
	s, r := storing(t), &inbox{}
	s.add(t, mailOf("/one", "Message-ID", "<1@example.org>"))
	s.add(t, mailOf("/two", "Message-ID", "<2@example.org>"))
	read(t, s, r)
	r.eventually(t, "/one", "/two")
	require.Eventually(t, func() bool { return s.unseen(t) == 0 }, platformtest.WaitFor, platformtest.Tick)
	// By IDLE, because the clock stands still. The server of this test forgets what arrives while IDLE begins.
	require.Eventually(t, func() bool {
		s.add(t, mailOf("/three", "Message-ID", "<3@example.org>"))
		return len(r.All()) > 2
	}, platformtest.WaitFor, 10*time.Millisecond)
}

func TestMailboxWithoutIdlePolls(t *testing.T) {
	s, r := storing(t, func(o *imapserver.Options) { o.Caps = imap.CapSet{imap.CapIMAP4rev1: {}} }), &inbox{}
	c := read(t, s, r)
	require.NoError(t, c.WaitTickers(t.Context(), 1))
	s.add(t, mailOf("/one"))
	require.Eventually(t, func() bool {
		c.Advance(time.Minute)
		return len(r.All()) == 1
	}, platformtest.WaitFor, platformtest.Tick)
}

func TestMailIsSeenOnlyAfterItWasReceived(t *testing.T) {
	s, r := storing(t), &inbox{platformtest.Inbox{Err: errBroker}}
	s.add(t, mailOf("/one"))
	core, logged := observer.New(zap.WarnLevel)
	c := read(t, s, r, func(c *MailboxConfig) { c.Logger = zap.New(core) })
	require.Eventually(t, func() bool { return failures(logged).Len() > 0 }, platformtest.WaitFor, platformtest.Tick)
	require.EqualValues(t, 1, s.unseen(t))
	require.Contains(t, failures(logged).All()[0].ContextMap()["reason"], "broker is unavailable")
	r.Failing(nil)
	require.Eventually(t, func() bool {
		c.Advance(time.Second)
		return s.unseen(t) == 0
	}, platformtest.WaitFor, platformtest.Tick)
	r.eventually(t, "/one")
}

func TestMailThatIsNotPassedOnIsSeenAndStopsNothing(t *testing.T) {
	s, r := storing(t), &inbox{}
	s.add(t, "no header at all")
	s.add(t, mailOf("x", "From", "eve@evil.test"))
	s.add(t, mailOf("x", "Auto-Submitted", "auto-replied"))
	s.add(t, mailOf(strings.Repeat("large ", 1000)))
	s.add(t, mailOf("/good", "Message-ID", "<good@example.org>"))
	core, logged := observer.New(zap.InfoLevel)
	read(t, s, r, func(c *MailboxConfig) { c.MaxMessage, c.Logger = 3000, zap.New(core) })
	r.eventually(t, "/good")
	require.Eventually(t, func() bool { return s.unseen(t) == 0 }, platformtest.WaitFor, platformtest.Tick)
	judged := logged.FilterMessageSnippet("mail was")
	require.Equal(t, 4, judged.Len())
	for _, entry := range judged.All() {
		require.NotContains(t, entry.ContextMap()["reason"], "@")
	}
}

func TestLostConnectionIsMadeAgain(t *testing.T) {
	s, r := storing(t), &inbox{}
	c := read(t, s, r)
	require.NoError(t, c.WaitTickers(t.Context(), 1))
	s.cut()
	s.add(t, mailOf("/after"))
	require.Eventually(t, func() bool {
		c.Advance(time.Second)
		return len(r.All()) == 1
	}, platformtest.WaitFor, platformtest.Tick)
	require.GreaterOrEqual(t, s.connections(), 2)
}

func TestRefusedLoginIsRetriedAndNotQuoted(t *testing.T) {
	s, r := storing(t), &inbox{}
	core, logged := observer.New(zap.WarnLevel)
	c := read(t, s, r, func(c *MailboxConfig) { c.Password, c.Logger = "wrong", zap.New(core) })
	require.Eventually(t, func() bool {
		c.Advance(time.Second)
		return failures(logged).Len() >= 2
	}, platformtest.WaitFor, platformtest.Tick)
	require.Contains(t, failures(logged).All()[0].ContextMap()["reason"], "AUTHENTICATIONFAILED")
	for _, entry := range failures(logged).All() {
		require.NotContains(t, entry.ContextMap()["reason"], "wrong")
	}
}

func TestMailboxNeedsTLSItTrusts(t *testing.T) {
	serverTLS, clientTLS := certificates(t)
	s, r := storing(t, func(o *imapserver.Options) { o.TLSConfig, o.InsecureAuth = serverTLS, false }), &inbox{}
	s.add(t, mailOf("/one"))
	core, logged := observer.New(zap.WarnLevel)
	read(t, s, r, func(c *MailboxConfig) { c.Security, c.Logger = StartTLS, zap.New(core) })
	require.Eventually(t, func() bool { return failures(logged).Len() > 0 }, platformtest.WaitFor, platformtest.Tick)
	require.Equal(t, "no TLS", failures(logged).All()[0].ContextMap()["reason"])
	require.Empty(t, r.All())
	read(t, s, r, func(c *MailboxConfig) { c.Security, c.TLS = StartTLS, clientTLS })
	r.eventually(t, "/one")
}

func TestMailboxHasNoMoreThanABatchAtOnce(t *testing.T) {
	s, r := storing(t), &inbox{}
	var want []string
	for i := range batch + 5 {
		text := "/n" + strings.Repeat("x", i)
		want = append(want, text)
		s.add(t, mailOf(text, "Message-ID", "<"+text+"@example.org>"))
	}
	read(t, s, r)
	r.eventually(t, want...)
}

func TestStopEndsAConnectionThatDoesNotAnswer(t *testing.T) {
	l, port := listen(t)
	defer func() { _ = l.Close() }()
	accepted := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			accepted <- c
		}
	}()
	m, err := NewMailbox(MailboxConfig{Acceptance: accepting(), Host: "127.0.0.1", Port: port, Security: NoTLS, Username: "a", Password: "b"}, &inbox{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	c := <-accepted
	_, err = c.Write([]byte("* OK hi\r\n"))
	require.NoError(t, err)
	buffer := make([]byte, 64)
	n, err := c.Read(buffer) // a command that is never answered
	require.NoError(t, err)
	require.True(t, bytes.Contains(buffer[:n], []byte("CAPABILITY")) || bytes.Contains(buffer[:n], []byte("LOGIN")))
	cancel()
	require.NoError(t, <-ended)
	_ = c.Close()
	require.ErrorIs(t, m.Run(t.Context()), ErrConfig)
}

func TestUnauthenticatedSendersAreWarnedAbout(t *testing.T) {
	for id, want := range map[string]int{"": 2, "mx.example.com": 0} {
		core, logged := observer.New(zap.WarnLevel)
		accept := accepting(func(a *Acceptance) { a.AuthServID = id })
		_, err := NewMailbox(MailboxConfig{Acceptance: accept, Host: "mail.example.com", Username: "a", Password: "b", Logger: zap.New(core)}, &inbox{})
		require.NoError(t, err)
		_, err = NewServer(ServerConfig{Acceptance: accept, Domain: "mx.example.com", Logger: zap.New(core)}, &inbox{})
		require.NoError(t, err)
		require.Equal(t, want, logged.Len(), id)
	}
}
