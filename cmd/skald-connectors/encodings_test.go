package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
)

// encodings are the forms in which a leaked value could hide.
func encodings(s string) []string {
	quoted, _ := json.Marshal(s)
	return []string{s, strings.Trim(string(quoted), `"`), url.QueryEscape(s), url.PathEscape(s), hex.EncodeToString([]byte(s)),
		base64.StdEncoding.EncodeToString([]byte(s)), base64.URLEncoding.EncodeToString([]byte(s))}
}
