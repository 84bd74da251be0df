package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/emersion/go-message/mail"
	"github.com/emersion/go-smtp"
)

// mailPlatform plays the mail server of a customer: it takes the mails of the app, and sends one to it.
type mailPlatform struct {
	inbox    *inbox
	listener net.Listener
	server   *smtp.Server
}

func newMailPlatform(i *inbox) (*mailPlatform, error) {
	p := &mailPlatform{inbox: i}
	var err error
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	p.server = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &mailSession{inbox: i}, nil }))
	p.server.Domain = "mail.example"
	p.server.ReadTimeout, p.server.WriteTimeout = 10*time.Second, 10*time.Second
	p.server.MaxMessageBytes = 1 << 20
	go func() { _ = p.server.Serve(p.listener) }() // Close ends it
	return p, nil
}

func (p *mailPlatform) close() { _ = p.server.Close() }

// mailSession receives one mail.
type mailSession struct {
	inbox *inbox
	to    string
}

func (s *mailSession) Reset()                                    {}
func (s *mailSession) Logout() error                             { return nil }
func (s *mailSession) Mail(string, *smtp.MailOptions) error      { return nil }
func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error { s.to = to; return nil }

func (s *mailSession) Data(r io.Reader) error {
	m, err := mail.CreateReader(r)
	if err != nil {
		return err
	}
	part, err := m.NextPart()
	if err != nil {
		return err
	}
	body, err := io.ReadAll(part.Body)
	if err != nil {
		return err
	}
	answers, _ := m.Header.Text("In-Reply-To")
	s.inbox.add(letter{place: "mail to " + s.to, text: string(body), answers: answers})
	return nil
}

// write sends a mail to the app at the address of its SMTP server.
func (p *mailPlatform) write(ctx context.Context, app, from, to, id, subject, text string) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", app)
	if err != nil {
		return err
	}
	client := smtp.NewClient(c)
	defer func() { _ = client.Close() }()
	message := fmt.Sprintf("From: %s\r\nTo: %s\r\nMessage-ID: %s\r\nSubject: %s\r\n\r\n%s\r\n", from, to, id, subject, text)
	return client.SendMail(from, []string{to}, strings.NewReader(message))
}
