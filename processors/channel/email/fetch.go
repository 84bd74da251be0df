package email

import (
	"context"
	"fmt"
	"strings"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"go.uber.org/zap"
)

// receive receives unseen messages, at most a batch of them. more reports that there are others.
func (m *Mailbox) receive(ctx context.Context, client *imapclient.Client) (more bool, err error) {
	found, err := client.UIDSearch(&imap.SearchCriteria{NotFlag: []imap.Flag{imap.FlagSeen, imap.FlagDeleted}}, nil).Wait()
	if err != nil {
		return false, err
	}
	uids := found.AllUIDs()
	more = len(uids) > batch
	for _, uid := range uids[:min(len(uids), batch)] {
		if err := m.take(ctx, client, imap.UIDSetNum(uid)); err != nil {
			return false, err
		}
	}
	return more, nil
}

// take receives one message and marks it as seen.
func (m *Mailbox) take(ctx context.Context, client *imapclient.Client, uid imap.UIDSet) error {
	sizes, err := client.Fetch(uid, &imap.FetchOptions{UID: true, RFC822Size: true}).Collect()
	if err != nil {
		return err
	}
	if len(sizes) == 0 {
		return nil // another client has removed it
	}
	if sizes[0].RFC822Size > m.accept.MaxMessage {
		m.log("mail was refused", "it is too large")
		return seen(client, uid)
	}
	// The server is asked for no more than that, whatever it says about the size.
	whole := &imap.FetchItemBodySection{Peek: true, Partial: &imap.SectionPartial{Size: m.accept.MaxMessage + 1}}
	messages, err := client.Fetch(uid, &imap.FetchOptions{UID: true, BodySection: []*imap.FetchItemBodySection{whole}}).Collect()
	if err != nil {
		return err
	}
	if len(messages) == 0 {
		return nil
	}
	switch v := m.accept.judge(messages[0].FindBodySection(whole)); {
	case v.dropped != "":
		m.log("mail was dropped", v.dropped)
	case v.refused != "":
		m.log("mail was refused", v.refused)
	default:
		receiving, cancel := context.WithTimeout(ctx, m.config.ReceiveTimeout)
		err := m.order.receive(receiving, v.in)
		cancel()
		if err != nil {
			return fmt.Errorf("%w: %w", errReceive, err)
		}
	}
	return seen(client, uid)
}

func seen(client *imapclient.Client, uid imap.UIDSet) error {
	return client.Store(uid, &imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true, Flags: []imap.Flag{imap.FlagSeen}}, nil).Close()
}

func (m *Mailbox) log(text, reason string) {
	m.config.Logger.Info(text, zap.String("account", m.config.Account), zap.String("reason", strings.TrimSpace(reason)))
}
