package email

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.UnixMilli(1_790_000_000_120)

func accepting(change ...func(*Acceptance)) Acceptance {
	a := Acceptance{Account: "main", Addresses: []string{"agent@example.com"}, Senders: []string{"@example.org", "ada@example.net"}}
	for _, f := range change {
		f(&a)
	}
	return a
}

func checked(t testing.TB, change ...func(*Acceptance)) *acceptance {
	t.Helper()
	var check bounds.Check
	a := accepting(change...).check(&check)
	require.NoError(t, check.Err(ErrConfig))
	return a
}

// mailOf returns a mail: headers that replace or add to a usual mail's, and a text. An empty header is removed.
func mailOf(body string, headers ...string) string {
	names := []string{"From", "To", "Subject", "Message-ID"}
	values := map[string]string{
		"From": "Ada <ada@example.org>", "To": "agent@example.com", "Subject": "Invoice", "Message-ID": "<m1@example.org>",
	}
	for i := 0; i < len(headers); i += 2 {
		if _, known := values[headers[i]]; !known {
			names = append(names, headers[i])
		}
		values[headers[i]] = headers[i+1]
	}
	var b strings.Builder
	for _, name := range names {
		if values[name] != "" {
			b.WriteString(name + ": " + values[name] + "\r\n")
		}
	}
	return b.String() + "\r\n" + body
}

type inbox struct{ platformtest.Inbox }

// certificates are those of a server on loopback, and of a client that trusts it.
func certificates(t testing.TB) (server, client *tls.Config) {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return &tls.Config{Certificates: s.TLS.Certificates}, &tls.Config{RootCAs: pool}
}

func listen(t testing.TB) (net.Listener, int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	return l, n
}

// serve runs a Server until the test ends and returns its address.
func serve(t testing.TB, r adapter.Receiver, change ...func(*ServerConfig)) string {
	t.Helper()
	c := ServerConfig{Acceptance: accepting(), Domain: "mx.example.com"}
	c = platformtest.With(c, change...)
	s, err := NewServer(c, r)
	require.NoError(t, err)
	l, _ := listen(t)
	platformtest.Run(t, func(ctx context.Context) error { return s.Serve(ctx, l) })
	return l.Addr().String()
}

// client connects to an SMTP server.
func client(t testing.TB, address string) *smtp.Client {
	t.Helper()
	c, err := smtp.Dial(address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func post(t testing.TB, address, mail string) error {
	t.Helper()
	return client(t, address).SendMail("bounces@example.org", []string{"agent@example.com"}, strings.NewReader(mail))
}

// submission is a mail server that answers are sent to.
type submission struct {
	*smtp.Server
	port int
	// The replies; nil is 250.
	mail, rcpt, data error
	auth             *smtp.SMTPError // to a wrong login; nil is 535
	cut              bool            // closes the connection in the reply to the end of a mail
	user, password   string

	mu     sync.Mutex
	from   []string
	to     []string
	mails  []string
	logins []string
}

func submit(t testing.TB, change ...func(*submission)) *submission {
	t.Helper()
	s := &submission{}
	s.Server = smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &submitted{s, c}, nil }))
	s.Domain, s.ErrorLog = "localhost", log.New(io.Discard, "", 0)
	for _, f := range change {
		f(s)
	}
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

func (s *submission) received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.mails...)
}

type submitted struct {
	s *submission
	c *smtp.Conn
}

func (s *submitted) Reset()        {}
func (s *submitted) Logout() error { return nil }
func (s *submitted) Mail(from string, _ *smtp.MailOptions) error {
	s.s.mu.Lock()
	defer s.s.mu.Unlock()
	s.s.from = append(s.s.from, from)
	return s.s.mail
}

func (s *submitted) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.s.mu.Lock()
	defer s.s.mu.Unlock()
	s.s.to = append(s.s.to, to)
	return s.s.rcpt
}

func (s *submitted) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.s.mu.Lock()
	defer s.s.mu.Unlock()
	if s.s.data == nil {
		s.s.mails = append(s.s.mails, string(raw))
	}
	if s.s.cut {
		_ = s.c.Conn().Close()
	}
	return s.s.data
}

func sender25(t testing.TB, s *submission, change ...func(*Config)) *Adapter {
	t.Helper()
	c := Config{From: "agent@example.com", FromName: "Agent", Host: "127.0.0.1", Port: s.port, Security: NoTLS, Clock: clock.NewFake(noon)}
	c = platformtest.With(c, change...)
	a, err := New(c)
	require.NoError(t, err)
	return a
}

func originOf(t testing.TB, mail string) topics.Origin {
	t.Helper()
	v := checked(t).judge([]byte(mail))
	require.Empty(t, v.dropped+v.refused)
	return v.in.Origin
}

var errBroker = errors.New("broker is unavailable")
