package email_test

import (
	"context"
	"fmt"
	"net"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/email"
)

// A program receives mail from a mailbox, or as an SMTP server behind the organization's own, and answers through its
// submission server. In a program the receiver is a channel.Bridge.
func Example() {
	receiver := adapter.ReceiverFunc(func(_ context.Context, in adapter.Inbound) error {
		fmt.Println(in.Origin.User, in.Text)
		return nil
	})
	accept := email.Acceptance{
		Account: "support", Addresses: []string{"agent@example.com"}, Senders: []string{"@example.com"}, AuthServID: "mx.example.com",
	}
	mailbox, err := email.NewMailbox(email.MailboxConfig{
		Acceptance: accept, Host: "imap.example.com", Security: email.ImplicitTLS, Username: "agent", Password: "from a secret store",
	}, receiver)
	if err != nil {
		panic(err)
	}
	server, err := email.NewServer(email.ServerConfig{Acceptance: accept, Domain: "agents.example.com"}, receiver)
	if err != nil {
		panic(err)
	}
	answers, err := email.New(email.Config{
		From: "agent@example.com", Host: "smtp.example.com", Username: "agent", Password: "from a secret store",
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(answers.Channel())

	ctx, stop := context.WithCancel(context.Background())
	stop() // a program stops when it is told to
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(mailbox.Run(ctx), server.Serve(ctx, l))
	// Output:
	// email
	// <nil> <nil>
}
