// Package apikey authenticates callers by API keys, whose hashes are in a file. Keys.Authenticate is an auth.Authenticate
// for all doors.
//
//	Authorization: Bearer tt_4f9a01c2d37be865_<64 hexadecimal digits>
//
// # The file
//
// Each line of the file is a JSON object. Blank lines, and lines that begin with #, are ignored:
//
//	{"id":"4f9a01c2d37be865","hash":"sha256:<64 hexadecimal digits>","user":"mira","sessions":["{user}:*"],"rights":["read","write"],"expires":"2027-01-01T00:00:00Z"}
//
//	member    meaning
//	id        4 to 32 lowercase letters and digits; names the key in logs
//	hash      SHA-256 of the secret, which is the part of the key after the second _
//	user      optional: the caller's user; without it, a message may name its user
//	sessions  the sessions that the key may use: patterns of auth.ParseSessions
//	rights    names of auth.ParseRights
//	expires   optional: when the key expires, as RFC 3339
//
// The file contains no secret. A secret is 32 random bytes, so it cannot be guessed from its hash. Slow hashes such as
// bcrypt protect weak passwords; here they would only let unauthenticated requests cost CPU time.
//
// # A new key
//
// New makes a key and its line. So does a shell; the key is shown once, and only its hash is stored:
//
//	id=$(openssl rand -hex 8) secret=$(openssl rand -hex 32)
//	hash=$(printf %s "$secret" | openssl dgst -sha256 -r | cut -d ' ' -f 1)
//	echo '{"id":"'$id'","hash":"sha256:'$hash'","user":"mira","sessions":["{user}:*"],"rights":["read","write"]}' >> keys
//	echo "tt_${id}_$secret"
//
// # Changes
//
// The file is read again when it has changed, at most once a second and only while there are requests, streams or sockets.
// A file that cannot be read or has an invalid line changes nothing: the former keys stay in use, and the reason is logged
// with the line's number, without its content. A key whose line was changed or removed is revoked: its streams and sockets
// end within about 10 s. An empty file revokes all keys. Write a new file and rename it, or append complete lines.
package apikey
