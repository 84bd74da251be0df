package turnhttp

import (
	"errors"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/envoption"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// ErrConfig is wrapped by the errors of New.
var ErrConfig = errors.New("turnhttp: invalid configuration")

// Config configures New. Fields that are zero have their defaults.
type Config struct {
	// Door is the configuration of both paths. Authenticate and Origins are for the chat door: tool callbacks have tokens, and come
	// from no page. Callers of the chat door need the right auth.Write; a message to a session that the caller may not use is answered
	// with 403. The caller's UserID replaces the user_id of the body; if it is empty, the door uses that of the body. Concurrency counts
	// messages and callbacks separately. In Limits, a callback counts for the session of its token, with the limits of a caller.
	auth.Door
	// CallbackSecrets are the secrets that callback tokens may be signed with (default: none, every callback is rejected). Each must
	// have at least token.MinSecret (32) bytes. Blank secrets are ignored. To rotate a secret, first add the new one here, then sign
	// with it (tools.Config.TokenSecret), and remove the old one when all tokens signed with it have expired.
	CallbackSecrets []string
	// ShortSecrets also accepts callback secrets of fewer than token.MinSecret (32) bytes, as FlightDeck does. New logs a warning then.
	// Use it only until the secret is replaced: who has one token can try out short secrets, and then sign results for every call.
	ShortSecrets bool
	// TokensOfAnyAgent also accepts callback tokens that name another agent or none (default: only those of this agent). Use it only
	// if all agents that share a secret trust each other, or for tokens that name no agent.
	TokensOfAnyAgent bool
	// TokensWithoutExpiry also accepts callback tokens that never expire, as FlightDeck does. Use it only while such tokens are in use:
	// one that leaks can be used for as long as its secret is accepted.
	TokensWithoutExpiry bool
	// SingleUseTokens rejects the second result for the call of a callback token with 401 (default: it is accepted, and the turn
	// ignores it). A request that failed may be repeated, and one with an Idempotency-Key gets the same answer.
	//
	// The door remembers calls in this process only, within the bounds of RememberFor and RememberCount; another process, or this one
	// after a restart, accepts a token once more. That at most one result takes effect does not depend on this field: the turn takes
	// the first result of a call, whatever the number of doors, and dead-letters others.
	SingleUseTokens bool
	// CallbackServices says which services the 'reply' of a message may name (default: none). It is called from several goroutines.
	CallbackServices func(service string) bool
	// RecordLimit is the largest record of the turn in bytes (default 1 MiB, at least 128 KiB). It must be that of the turn. A message
	// that is so large that its turn could only end in an error output, code too_large, is answered with 413: one of more than the
	// limit less 80 KiB, which the turn needs for the rest of its row and for the memory of the user.
	RecordLimit int
	// RememberFor and RememberCount are for how long, and for how many keys, the answer to a request with an Idempotency-Key is
	// remembered (default 24 hours and 10,000 keys, at least 1 ms and 1). The oldest keys are evicted first. Each takes some hundred
	// bytes of memory.
	RememberFor   time.Duration
	RememberCount int
	// FlightDeck answers and writes as FlightDeck's chat API where the door would not otherwise (default: it does not): a body that is
	// not JSON is answered with 500, and a message without a user_id gets the user topics.PlaceholderUser; a user_id that is null, an
	// object or an array becomes the text that Java makes of it.
	FlightDeck bool
	// PathPrefixes makes Handler.ServeHTTP serve every path that begins with ChatPath or ToolResponsePath, as FlightDeck does (default:
	// exact paths). A proxy that protects exact paths does not protect the others: /api/chatterbox is a chat door.
	PathPrefixes bool
}

func (c *Config) complete(check *bounds.Check) {
	entrance.Complete(check, &c.Door)
	if c.CallbackServices == nil {
		c.CallbackServices = func(string) bool { return false }
	}
	bounds.AtLeast(check, "RecordLimit", &c.RecordLimit, envoption.DefaultRecordLimit, envoption.MinRecordLimit)
	bounds.AtLeast(check, "RememberFor", &c.RememberFor, 24*time.Hour, time.Millisecond)
	bounds.AtLeast(check, "RememberCount", &c.RememberCount, 10_000, 1)
}

// entrances returns the entrances of messages and of callbacks.
func (c *Config) entrances(check *bounds.Check, agent string) (chats, results *entrance.Entrance) {
	tokens := c.Door
	tokens.Authenticate, tokens.Origins = nil, nil
	chats = entrance.New(check, entrance.Config{Door: c.Door, Name: "chat", Agent: agent, CORS: entrance.CORS{Methods: "POST, OPTIONS"}})
	return chats, entrance.New(check, entrance.Config{
		Door: tokens, Name: "callback", Agent: agent, Tokens: true, Media: []string{entrance.AnyMedia},
	})
}
