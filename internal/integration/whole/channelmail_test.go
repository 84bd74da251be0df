package whole

import (
	"context"
	"io"
	"log"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-message/mail"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/email"
)

// postOffice is the mail server that answers are sent to.
type postOffice struct {
	mu    sync.Mutex
	mails []letter
}

// letter is a mail with its envelope.
type letter struct {
	from string
	to   []string
	raw  string
}

func (p *postOffice) NewSession(*smtp.Conn) (smtp.Session, error) { return &posting{office: p}, nil }

func (p *postOffice) received() []letter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]letter(nil), p.mails...)
}

type posting struct {
	office *postOffice
	letter letter
}

func (s *posting) Reset()        { s.letter = letter{} }
func (s *posting) Logout() error { return nil }
func (s *posting) Mail(from string, _ *smtp.MailOptions) error {
	s.letter.from = from
	return nil
}

func (s *posting) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.letter.to = append(s.letter.to, to)
	return nil
}

func (s *posting) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.letter.raw = string(raw)
	s.office.mu.Lock()
	defer s.office.mu.Unlock()
	s.office.mails = append(s.office.mails, s.letter)
	return nil
}

// openOffice starts a mail server and returns its port.
func openOffice(t *testing.T, p *postOffice) int {
	t.Helper()
	server := smtp.NewServer(p)
	server.Domain, server.ErrorLog = "localhost", log.New(io.Discard, "", 0)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		_ = server.Close()
		running.Wait()
	})
	return l.Addr().(*net.TCPAddr).Port
}

// mailed adds the channel email to a world. It returns the address of its SMTP server and the mail server that gets its answers.
func mailed(d *channelWorld) (address string, office *postOffice) {
	d.t.Helper()
	d.configure("slack", "email")
	office = &postOffice{}
	out, err := email.New(email.Config{
		From: "agent@example.com", Host: "127.0.0.1", Port: openOffice(d.t, office), Security: email.NoTLS,
	})
	require.NoError(d.t, err)
	in, err := email.NewServer(email.ServerConfig{
		Acceptance: email.Acceptance{Account: "main", Addresses: []string{"agent@example.com"}, Senders: []string{"@example.org"}},
		Domain:     "mx.example.com",
	}, d.bridge)
	require.NoError(d.t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(d.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- in.Serve(ctx, l) }()
	d.t.Cleanup(func() {
		cancel()
		require.NoError(d.t, <-ended)
	})
	d.accounts = append(d.accounts, channel.AccountAdapter{Name: "main", Adapter: out})
	return l.Addr().String(), office
}

// mailTo sends a mail from ada.
func mailTo(t *testing.T, address, id, subject, body string, headers ...string) {
	t.Helper()
	raw := "From: Ada <ada@example.org>\r\nTo: agent@example.com\r\nSubject: " + subject + "\r\nMessage-ID: " + id + "\r\n" +
		strings.Join(append(headers, ""), "\r\n") + "\r\n" + body
	client, err := smtp.Dial(address)
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	require.NoError(t, client.SendMail("ada@example.org", []string{"agent@example.com"}, strings.NewReader(raw)))
}

// readLetter returns the header and the text of a mail.
func readLetter(t *testing.T, l letter) (mail.Header, string) {
	t.Helper()
	r, err := mail.CreateReader(strings.NewReader(l.raw))
	require.NoError(t, err)
	part, err := r.NextPart()
	require.NoError(t, err)
	body, err := io.ReadAll(part.Body)
	require.NoError(t, err)
	return r.Header, strings.TrimSpace(strings.ReplaceAll(string(body), "\r\n", "\n"))
}

// Two conversations with one person: the results thread under the mails that asked for them.
func TestMailResultThreadsUnderTheOriginal(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g)
		d.holdBack()
		address, office := mailed(d)
		d.start()
		mailTo(t, address, "<one@example.org>", "Boats", "delegate say two boats")
		mailTo(t, address, "<two@example.org>", "Cranes", "delegate say one crane",
			"In-Reply-To: <zero@example.org>", "References: <root@example.org> <zero@example.org>")
		d.inFlight(2)
		d.eventually(func() bool { return len(office.received()) == 2 })
		d.release()
		d.eventually(func() bool { return len(office.received()) == 4 })
		texts := map[string][]string{}
		for _, l := range office.received() {
			require.Equal(t, "agent@example.com", l.from)
			require.Equal(t, []string{"ada@example.org"}, l.to)
			h, text := readLetter(t, l)
			thread := strings.Join([]string{h.Get("In-Reply-To"), strings.Join(strings.Fields(h.Get("References")), " "), h.Get("Subject")}, "|")
			texts[thread] = append(texts[thread], text)
		}
		require.Equal(t, map[string][]string{
			"<one@example.org>|<one@example.org>|Re: Boats":                                        {dispatched, "two boats"},
			"<two@example.org>|<root@example.org> <zero@example.org> <two@example.org>|Re: Cranes": {dispatched, "one crane"},
		}, texts)
		require.Empty(t, d.wall.all())
	})
}

// The result contains the end of a mail, SMTP commands and headers. They are its text.
func TestMailedResultIsNoSMTPCommand(t *testing.T) {
	d := newChannelWorld(t, processors.AtLeastOnce)
	address, office := mailed(d)
	d.scripts[d.back] = says("hi\r\n.\r\nMAIL FROM:<eve@evil.test>\r\nRCPT TO:<bob@evil.test>\r\nDATA\r\nBcc: bob@evil.test\r\n\r\n..\r\nQUIT")
	d.start()
	mailTo(t, address, "<one@example.org>", "Boats", "delegate count")
	d.eventually(func() bool { return len(office.received()) == 2 })
	last := office.received()[1]
	require.Equal(t, []string{"ada@example.org"}, last.to)
	h, text := readLetter(t, last)
	require.Empty(t, h.Get("Bcc"))
	require.Equal(t, "hi\n.\nMAIL FROM:<eve@evil.test>\nRCPT TO:<bob@evil.test>\nDATA\nBcc: bob@evil.test\n\n..\nQUIT", text)
}
