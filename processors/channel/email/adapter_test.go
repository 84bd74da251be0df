package email

import (
	"cmp"
	"context"
	"net"
	"strings"
	"testing"

	"github.com/emersion/go-message/mail"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/topics"
)

func chunkTo(to topics.Origin, text string) adapter.Chunk {
	return adapter.Chunk{To: to, Text: text, Key: "delivery/0", Count: 1}
}

// sent reads the only mail that a server has received.
func sent(t *testing.T, s *submission) (mail.Header, string) {
	t.Helper()
	require.Len(t, s.received(), 1)
	r, err := mail.CreateReader(strings.NewReader(s.received()[0]))
	require.NoError(t, err)
	part, err := r.NextPart()
	require.NoError(t, err)
	text, err := readText(part.Body, 1<<20)
	require.NoError(t, err)
	return r.Header, text
}

func TestAnswerIsThreadedUnderTheMailThatItAnswers(t *testing.T) {
	s := submit(t)
	to := originOf(t, mailOf("again", "Message-ID", "<m2@example.org>", "Subject", "RE: re: Invoice", "References", "<m1@example.org> <a@example.com>"))
	got, err := sender25(t, s).Send(t.Context(), chunkTo(to, "Paid **today**."))
	require.NoError(t, err)
	h, text := sent(t, s)
	require.Equal(t, "Paid **today**.", text)
	require.Equal(t, "<m2@example.org>", h.Get("In-Reply-To"))
	require.Equal(t, "<m1@example.org> <a@example.com> <m2@example.org>", strings.Join(strings.Fields(h.Get("References")), " "))
	require.Equal(t, "Re: Invoice", h.Get("Subject"))
	require.Equal(t, got.ID, h.Get("Message-ID"))
	require.True(t, isOwn(got.ID, "example.com"))
	require.Equal(t, "auto-replied", h.Get("Auto-Submitted"))
	require.Equal(t, []string{"agent@example.com"}, s.from)
	require.Equal(t, []string{"ada@example.org"}, s.to)
}

func TestTwoConversationsWithOnePersonStayApart(t *testing.T) {
	one := originOf(t, mailOf("first", "Subject", "One"))
	two := originOf(t, mailOf("second", "Subject", "Two", "Message-ID", "<m2@example.org>"))
	require.False(t, one.SamePlace(two))
	require.NotEqual(t, one.Session("pilot"), two.Session("pilot"))
	for _, c := range []struct {
		to          topics.Origin
		id, subject string
	}{{one, "<m1@example.org>", "Re: One"}, {two, "<m2@example.org>", "Re: Two"}, {one, "<m1@example.org>", "Re: One"}} {
		s := submit(t)
		_, err := sender25(t, s).Send(t.Context(), chunkTo(c.to, "answer"))
		require.NoError(t, err)
		h, _ := sent(t, s)
		require.Equal(t, []string{c.id, c.id, c.subject}, []string{h.Get("In-Reply-To"), h.Get("References"), h.Get("Subject")})
	}
}

func TestReplyToAnAnswerIsInTheSameConversation(t *testing.T) {
	s := submit(t)
	first := originOf(t, mailOf("first"))
	_, err := sender25(t, s).Send(t.Context(), chunkTo(first, "answer"))
	require.NoError(t, err)
	h, _ := sent(t, s)
	reply := originOf(t, mailOf("thanks", "Message-ID", "<m9@example.org>", "In-Reply-To", h.Get("Message-ID"), "References", h.Get("References")+" "+h.Get("Message-ID")))
	require.True(t, reply.SamePlace(first))
}

func TestRepeatedAnswerHasTheSameMessageID(t *testing.T) {
	s := submit(t)
	a, to := sender25(t, s), originOf(t, mailOf("first"))
	one, err := a.Send(t.Context(), chunkTo(to, "answer"))
	require.NoError(t, err)
	again, err := a.Send(t.Context(), chunkTo(to, "answer"))
	require.NoError(t, err)
	require.Equal(t, one, again)
	c := chunkTo(to, "answer")
	c.Key = "delivery/1"
	other, err := a.Send(t.Context(), c)
	require.NoError(t, err)
	require.NotEqual(t, one, other)
}

func TestTextAndHeadersCannotInjectCommandsOrHeaders(t *testing.T) {
	const evil = "\r\n.\r\nMAIL FROM:<eve@evil.test>\r\nRCPT TO:<eve@evil.test>\r\nDATA\r\n"
	s := submit(t)
	a := sender25(t, s, func(c *Config) { c.FromName = "" })
	to := originOf(t, mailOf("hi"))
	to.Adapter = topics.Raw(`{"subject":"x\r\nBcc: eve@evil.test\u2028\u0000","references":["<a@b>\r\nBcc: eve@evil.test","<ok@example.org>"]}`)
	to.MessageID = "<a@b>\r\nBcc: eve@evil.test"
	c := chunkTo(to, "before"+evil+"\n.\nafter\r.\r")
	c.SenderName = "Agent\r\nBcc: eve@evil.test"
	_, err := a.Send(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, []string{"ada@example.org"}, s.to)
	require.Equal(t, []string{"agent@example.com"}, s.from)
	h, text := sent(t, s)
	require.False(t, h.Has("Bcc"))
	require.False(t, h.Has("In-Reply-To"))
	require.Equal(t, "<ok@example.org>", h.Get("References"))
	require.Contains(t, text, "before\n.\nMAIL FROM:<eve@evil.test>")
	require.Contains(t, text, "\n.\nafter")
	from, err := h.AddressList("From")
	require.NoError(t, err)
	require.Len(t, from, 1)
	require.Equal(t, "agent@example.com", from[0].Address)

	for _, recipient := range []string{"ada@example.org\r\nRCPT TO:<eve@evil.test>", "ada@example.org>\r\nDATA", "ada@example.org, eve@evil.test", ""} {
		to.Recipient = recipient
		_, err := a.Send(t.Context(), chunkTo(to, "x"))
		require.True(t, platformtest.Failure(t, err).Final)
	}
	require.Len(t, s.received(), 1)
}

func TestRepliesOfTheMailServerDecideAboutRetries(t *testing.T) {
	status := func(code int) error { return &smtp.SMTPError{Code: code, Message: "no: ada@example.org"} }
	for name, c := range map[string]struct {
		set   func(*submission)
		want  string
		final bool
	}{
		"unknown recipient": {func(s *submission) { s.rcpt = status(550) }, "smtp status 550", true},
		"greylisted":        {func(s *submission) { s.rcpt = status(451) }, "smtp status 451", false},
		"shutting down":     {func(s *submission) { s.mail = status(421) }, "smtp status 421", false},
		"login is required": {func(s *submission) { s.mail = status(530) }, "smtp status 530", false},
		"too large":         {func(s *submission) { s.data = status(552) }, "smtp status 552", true},
		"refused":           {func(s *submission) { s.data = status(554) }, "smtp status 554", true},
		"full":              {func(s *submission) { s.data = status(452) }, "smtp status 452", false},
		"cut":               {func(s *submission) { s.cut = true }, "connection lost", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sender25(t, submit(t, c.set)).Send(t.Context(), chunkTo(originOf(t, mailOf("hi")), "x"))
			f := platformtest.Failure(t, err)
			require.Equal(t, c.want, f.Reason)
			require.Equal(t, c.final, f.Final)
		})
	}
}

func TestUnreachableMailServerIsRetried(t *testing.T) {
	to := originOf(t, mailOf("hi"))
	l, port := listen(t)
	require.NoError(t, l.Close())
	_, err := sender25(t, &submission{port: port}).Send(t.Context(), chunkTo(to, "x"))
	require.Equal(t, adapter.Failure{Reason: "no connection"}, platformtest.Failure(t, err))

	l, port = listen(t) // greets with a refusal
	defer func() { _ = l.Close() }()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("554 go away ada@example.org\r\n"))
			_ = c.Close()
		}
	}()
	_, err = sender25(t, &submission{port: port}).Send(t.Context(), chunkTo(to, "x"))
	require.False(t, platformtest.Failure(t, err).Final)
	require.NotContains(t, err.Error(), "ada")
}

func TestSendEndsWithItsContext(t *testing.T) {
	l, port := listen(t)
	defer func() { _ = l.Close() }()
	accepted := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			accepted <- c // never greets
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		c := <-accepted
		cancel()
		_, _ = c.Read(make([]byte, 1)) // until the adapter closes it
		_ = c.Close()
	}()
	_, err := sender25(t, &submission{port: port}).Send(ctx, chunkTo(originOf(t, mailOf("hi")), "x"))
	require.Equal(t, topics.ReasonInterrupted, platformtest.Failure(t, err).Reason)
}

// Plain authentication of the submission server.
func (s *submitted) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *submitted) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		s.s.mu.Lock()
		defer s.s.mu.Unlock()
		s.s.logins = append(s.s.logins, user)
		if user != s.s.user || password != s.s.password {
			return cmp.Or(s.s.auth, smtp.ErrAuthFailed)
		}
		return nil
	}), nil
}

func TestConnectionIsEncryptedAndLoggedIn(t *testing.T) {
	serverTLS, clientTLS := certificates(t)
	to := originOf(t, mailOf("hi"))
	login := func(c *Config) {
		c.Security, c.TLS, c.Username, c.Password = StartTLS, clientTLS, "agent", "secret"
	}
	s := submit(t, func(s *submission) { s.TLSConfig, s.user, s.password = serverTLS, "agent", "secret" })
	_, err := sender25(t, s, login).Send(t.Context(), chunkTo(to, "x"))
	require.NoError(t, err)
	require.Equal(t, []string{"agent"}, s.logins)

	wrong := submit(t, func(s *submission) { s.TLSConfig, s.user, s.password = serverTLS, "agent", "other" })
	_, err = sender25(t, wrong, login).Send(t.Context(), chunkTo(to, "x"))
	require.Equal(t, adapter.Failure{Reason: "mail server refused the connection: status 535", Status: 535}, platformtest.Failure(t, err), "retried: the operator mends it")
	refused := adapter.Failure{Reason: "mail server refused the connection: status 535", Status: 535, Final: true}
	require.Equal(t, refused, platformtest.Failure(t, sender25(t, wrong, login).Check(t.Context())))
	wrong.mu.Lock()
	wrong.auth = &smtp.SMTPError{Code: 454, Message: "Temporary authentication failure"}
	wrong.mu.Unlock()
	later := adapter.Failure{Reason: "mail server refused the connection: status 454"}
	require.Equal(t, later, platformtest.Failure(t, sender25(t, wrong, login).Check(t.Context())), "not about the password")
	require.NoError(t, sender25(t, s, login).Check(t.Context()))
	require.Empty(t, wrong.received())

	plain := submit(t, func(s *submission) { s.user, s.password = "agent", "secret" }) // offers no STARTTLS
	_, err = sender25(t, plain, login).Send(t.Context(), chunkTo(to, "x"))
	require.Equal(t, "the server offers no STARTTLS", platformtest.Failure(t, err).Reason)
	require.Empty(t, plain.received())
	require.Empty(t, plain.logins, "the password is not sent without TLS")

	_, err = sender25(t, s, login, func(c *Config) { c.TLS = nil }).Send(t.Context(), chunkTo(to, "x"))
	require.Equal(t, "no TLS", platformtest.Failure(t, err).Reason, "the certificate is not trusted")
}
