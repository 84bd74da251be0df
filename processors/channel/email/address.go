package email

import "strings"

// maxAddress is the longest address in bytes (RFC 5321, section 4.5.3.1.3).
const maxAddress = 254

// parseAddress returns an address with its domain in lower case. It accepts unquoted local parts and host names in ASCII only:
// quoted ones may contain anything, such as a second "@", and letters of other alphabets look like ASCII.
func parseAddress(s string) (string, bool) {
	local, domain, ok := strings.Cut(s, "@")
	if !ok || len(s) > maxAddress || local == "" || len(local) > 64 || !isDomain(domain) {
		return "", false
	}
	for i := range len(local) {
		if c := local[i]; !isAlphanumeric(c) && !strings.ContainsRune(".!#$%&'*+-/=?^_`{|}~", rune(c)) {
			return "", false
		}
	}
	if local[0] == '.' || local[len(local)-1] == '.' || strings.Contains(local, "..") {
		return "", false
	}
	return local + "@" + strings.ToLower(domain), true
}

func isDomain(s string) bool {
	if s == "" {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if !isAlphanumeric(label[i]) && label[i] != '-' {
				return false
			}
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// domainOf returns the domain of an address that parseAddress has returned.
func domainOf(address string) string { return address[strings.IndexByte(address, '@')+1:] }

// senders is a list of allowed senders: addresses, and domains that begin with "@". Case does not matter. A domain does not include
// its subdomains.
type senders map[string]struct{}

func (s senders) allow(address string) bool {
	address = strings.ToLower(address)
	if _, ok := s[address]; ok {
		return true
	}
	_, ok := s["@"+domainOf(address)]
	return ok
}

// parseSenders returns the list and the first entry that is neither an address nor a domain.
func parseSenders(list []string) (s senders, bad string) {
	s = senders{}
	for _, entry := range list {
		if domain, ok := strings.CutPrefix(entry, "@"); ok && isDomain(domain) {
			s["@"+strings.ToLower(domain)] = struct{}{}
		} else if address, ok := parseAddress(entry); ok {
			s[strings.ToLower(address)] = struct{}{}
		} else {
			return nil, entry
		}
	}
	return s, ""
}
