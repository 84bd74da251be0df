package turnhttp

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/dedup"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/topics"
)

// The URL paths that Handler.ServeHTTP serves.
const (
	ChatPath         = "/api/chat"
	ToolResponsePath = "/api/tools/response"
)

// Handler is the HTTP handler of an agent: ChatPath receives messages, ToolResponsePath receives the results of
// asynchronous tools. It answers with success only after the brokers have acknowledged the records.
//
// Handler serves both paths; Chat and ToolResponse return the handler of one, to be mounted at any path. All are safe for
// concurrent use and need not be closed. The caller owns the publisher. Connections and the headers of requests are limited
// by the http.Server: use package processors/httpserver.
type Handler struct {
	topics  topics.Catalog
	to      processors.Publisher
	tokens  token.Verifier
	config  Config
	once    *dedup.Memory[fingerprint, remembered]
	chats   *entrance.Entrance
	results *entrance.Entrance
	used    *dedup.Memory[fingerprint, answer] // calls that have a result, with Config.SingleUseTokens
	pairs   atomic.Uint64                      // how many messages with a route and without a request ID were accepted
}

// New returns the HTTP handler of an agent. Without Config.Authenticate every request may chat; without Config.CallbackSecrets
// every tool callback is rejected. New logs a warning for each of the two. Its error wraps ErrConfig and joins all problems
// with the agent's name, the publisher and the configuration.
func New(agent string, to processors.Publisher, c Config) (*Handler, error) {
	var check bounds.Check
	c.complete(&check)
	catalog, err := topics.For(agent)
	if err != nil {
		check.Wrong("agent", "cannot be used: %w", err)
	}
	if to == nil {
		check.Wrong("publisher", "is nil")
	}
	chats, results := c.entrances(&check, agent)
	tokens, err := token.NewVerifier(c.CallbackSecrets...)
	short := c.ShortSecrets && errors.Is(err, token.ErrSecret)
	if short {
		tokens, err = token.NewShortVerifier(c.CallbackSecrets...), nil
	}
	if err != nil {
		check.Wrong("CallbackSecrets", "cannot be used: %w", err)
	}
	if !c.TokensOfAnyAgent {
		tokens = tokens.For(agent)
	}
	if c.TokensWithoutExpiry {
		tokens = tokens.AllowNoExpiry()
	}
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	h := &Handler{
		topics: catalog, to: to, tokens: tokens, config: c, chats: chats, results: results,
		once: dedup.New[fingerprint, remembered](c.RememberFor, c.RememberCount, c.Clock),
		used: dedup.New[fingerprint, answer](c.RememberFor, c.RememberCount, c.Clock),
	}
	entrance.WarnOpen(c.Door, agent, "chat door is open: requests are not authenticated and may write to every session")
	if short {
		c.Logger.Warn("a callback secret is short: who has one token can try out secrets until its signature matches",
			zap.String("agent", agent), zap.Int("want at least bytes", token.MinSecret))
	}
	if !h.tokens.Configured() {
		c.Logger.Info("tool callbacks are rejected: no callback secret is configured", zap.String("agent", agent))
	}
	return h, nil
}

// ServeHTTP implements http.Handler. It serves ChatPath and ToolResponsePath, and answers other paths with 404. See
// Config.PathPrefixes.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case h.serves(r, ChatPath):
		h.serveChat(w, r)
	case h.serves(r, ToolResponsePath):
		h.serveToolResponse(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (h *Handler) serves(r *http.Request, path string) bool {
	return r.URL.Path == path || h.config.PathPrefixes && strings.HasPrefix(r.URL.Path, path)
}
