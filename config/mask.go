package config

import "regexp"

// password is the password of a URL, wherever in a text it stands. It takes more rather
// than less: a password may hold a slash or an at sign that someone forgot to escape.
var password = regexp.MustCompile(`(://[^\s:@/]*):[^\s]*@`)

// Masked returns text with the passwords of URLs replaced, fit to be printed.
func Masked(text string) string { return password.ReplaceAllString(text, "$1:xxxxx@") }
