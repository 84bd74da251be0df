package email

import (
	"strings"

	"github.com/turntable-streams/turntable/internal/digests"
)

const (
	// maxMessageID is the longest Message-ID that is used, in bytes. Longer ones do not fit into origins and lines.
	maxMessageID = 250
	// maxReferences and maxReferenceBytes bound the references of an answer.
	maxReferences     = 20
	maxReferenceBytes = 3 << 10
	ownPrefix         = "turntable."
)

// messageIDs returns the Message-IDs in a header, with their angle brackets (RFC 5322, section 3.6.4). It skips unusable ones.
func messageIDs(header string) (ids []string) {
	for {
		start := strings.IndexByte(header, '<')
		if start < 0 {
			return ids
		}
		header = header[start:]
		end := strings.IndexByte(header, '>')
		if end < 0 {
			return ids
		}
		if id := header[:end+1]; isMessageID(id) {
			ids = append(ids, id)
		}
		header = header[end+1:]
	}
}

func isMessageID(id string) bool {
	if len(id) < 3 || len(id) > maxMessageID || id[0] != '<' || id[len(id)-1] != '>' {
		return false
	}
	for i := 1; i < len(id)-1; i++ {
		if id[i] <= ' ' || id[i] > '~' || id[i] == '<' || id[i] == '>' {
			return false
		}
	}
	return true
}

// chain returns the references of an answer: those of the mail and its own ID. If there are too many, the first and the last stay.
func chain(references []string, id string) []string {
	var all []string
	seen := map[string]bool{}
	for _, ref := range append(append([]string{}, references...), id) {
		if isMessageID(ref) && !seen[ref] {
			seen[ref] = true
			all = append(all, ref)
		}
	}
	size := 0
	for _, ref := range all {
		size += len(ref)
	}
	for len(all) > 2 && (len(all) > maxReferences || size > maxReferenceBytes) {
		size -= len(all[1])
		all = append(all[:1], all[2:]...)
	}
	return all
}

// answerID returns the Message-ID of an answer. It is the same for the same key and address.
func answerID(key, from string) string {
	return "<" + ownPrefix + digests.Hex("answer", from, key) + "@" + domainOf(from) + ">"
}

// isOwn reports whether a Message-ID is one that answerID returns for an address of the domain.
func isOwn(id, domain string) bool {
	name, ok := strings.CutPrefix(id, "<"+ownPrefix)
	if !ok {
		return false
	}
	name, ok = strings.CutSuffix(strings.ToLower(name), "@"+domain+">")
	return ok && len(name) == 32
}
