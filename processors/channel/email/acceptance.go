package email

import (
	"context"
	"errors"
	"strings"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/inorder"
)

// Channel is the type of this channel: the Channel of origins.
const Channel = "email"

// ErrConfig is wrapped by the errors of New, NewServer and NewMailbox about a configuration.
var ErrConfig = errors.New("email: bad configuration")

// Acceptance says which mail is passed on for an account.
type Acceptance struct {
	// Account is the name of the account: the Account of origins.
	Account string
	// Addresses are the account's addresses, at least one. Server takes mail for them only. Mail from them is dropped.
	Addresses []string
	// Senders may write: addresses such as "ada@example.com" and domains such as "@example.com", without their subdomains.
	// Case does not matter. At least one is required, unless AnySender is set, which lets everyone write. The header Reply-To is
	// followed to Senders, and with AnySender also to the domain of the sender: strangers must not have the agent write to others.
	Senders   []string
	AnySender bool
	// AuthServID is the name of the mail server whose Authentication-Results are required to say dmarc=pass for the domain of
	// the sender. Empty: the sender is not verified, and anyone can write with any address. See the package's documentation.
	AuthServID string
	// MaxMessage is the largest mail and MaxText the longest text of one, in bytes (default 10 MiB and 128 KiB). Larger ones
	// are refused.
	MaxMessage int64
	MaxText    int
}

// acceptance is a checked Acceptance.
type acceptance struct {
	Acceptance
	own     map[string]struct{} // Addresses in lower case
	domains []string
	senders senders
}

func (a Acceptance) check(check *bounds.Check) *acceptance {
	c := &acceptance{Acceptance: a, own: map[string]struct{}{}}
	bounds.AtLeast(check, "MaxMessage", &c.MaxMessage, 10<<20, 1)
	bounds.AtLeast(check, "MaxText", &c.MaxText, 128<<10, 1)
	if a.Account == "" {
		check.Wrong("Account", "is empty")
	}
	if len(a.Addresses) == 0 {
		check.Wrong("Addresses", "is empty")
	}
	for _, s := range a.Addresses {
		address, ok := parseAddress(s)
		if !ok {
			check.Wrong("Addresses", "has %q, want an address such as agent@example.com", s)
			continue
		}
		c.own[strings.ToLower(address)] = struct{}{}
		c.domains = append(c.domains, domainOf(address))
	}
	if len(a.Senders) == 0 && !a.AnySender {
		check.Wrong("Senders", "is empty (set AnySender to let everyone write)")
	}
	list, bad := parseSenders(a.Senders)
	if bad != "" || list == nil {
		check.Wrong("Senders", "has %q, want an address or @domain", bad)
	}
	c.senders = list
	if strings.ContainsAny(a.AuthServID, " \t\r\n;()\"") {
		check.Wrong("AuthServID", "is %q, want a name", a.AuthServID)
	}
	return c
}

// warn logs that the sender of a mail proves nothing, if that is so.
func (a *acceptance) warn(to *zap.Logger) {
	if a.AuthServID == "" {
		to.Warn("the senders of mail are not authenticated: anyone can write with any address (use AuthServID)",
			zap.String("account", a.Account))
	}
}

func (a *acceptance) isOwnAddress(address string) bool {
	_, ok := a.own[strings.ToLower(address)]
	return ok
}

// mayBeAnswered reports whether the answer to a sender may go to the address of its Reply-To.
func (a *acceptance) mayBeAnswered(from, replyTo string) bool {
	return a.senders.allow(replyTo) || a.AnySender && domainOf(replyTo) == domainOf(from)
}

func (a *acceptance) mayWrite(address string) bool { return a.AnySender || a.senders.allow(address) }

// inOrder returns a receiver that passes the events of a conversation on one after the other.
func inOrder(to adapter.Receiver) adapter.Receiver {
	var turns inorder.Turns[string]
	return adapter.ReceiverFunc(func(ctx context.Context, in adapter.Inbound) error {
		return turns.Do(ctx, in.Origin.Session(""), func() error { return to.Receive(ctx, in) })
	})
}
