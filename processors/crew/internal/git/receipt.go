package git

import "strings"

// filesLimit and bytesLimit bound the paths of a receipt; further ones are left out.
const (
	filesLimit = 1000
	bytesLimit = 128 << 10
)

// bounded returns the first paths for a receipt, at most limit and bytesLimit. Bytes that are no UTF-8 are replaced, because JSON
// has none.
func bounded(paths []string, limit int) (some []string) {
	size := 0
	for _, p := range paths {
		if size += len(p); len(some) == limit || size > bytesLimit {
			break
		}
		some = append(some, strings.ToValidUTF8(p, "\uFFFD"))
	}
	return some
}

// plain is the text of an error for a receipt.
func plain(err error) string { return strings.ToValidUTF8(err.Error(), "\uFFFD") }
