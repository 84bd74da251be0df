package email

import (
	"strings"

	"github.com/emersion/go-message/mail"
)

// headerLoop is in the answers of this package, so that they are recognised when they come back.
const headerLoop = "X-Turntable-Loop"

// automatic returns why a mail must not be answered because a program wrote it, empty if a person did (RFC 3834, section 2).
func (a *acceptance) automatic(h mail.Header, from string) string {
	local, _, _ := strings.Cut(strings.ToLower(from), "@")
	word := func(key string) string {
		s, _, _ := strings.Cut(h.Get(key), ";")
		s, _, _ = strings.Cut(s, "(")
		return strings.ToLower(strings.TrimSpace(s))
	}
	kind, _, _ := h.ContentType()
	switch precedence := word("Precedence"); {
	case a.isOwnAddress(from):
		return "it is from an address of the account"
	case h.Has(headerLoop):
		return "it is an answer of an agent"
	case h.Has("Auto-Submitted") && word("Auto-Submitted") != "no":
		return "it was sent automatically"
	case precedence == "bulk" || precedence == "list" || precedence == "junk":
		return "it is bulk mail"
	case h.Has("List-Id"):
		return "it is from a mailing list"
	case kind == "multipart/report" || local == "mailer-daemon":
		return "it is a report"
	case h.Has("Return-Path") && strings.TrimSpace(h.Get("Return-Path")) == "<>":
		return "it has no sender"
	}
	for _, id := range messageIDs(h.Get("Message-Id")) {
		for _, domain := range a.domains {
			if isOwn(id, domain) {
				return "it is an answer of this account"
			}
		}
	}
	return ""
}
