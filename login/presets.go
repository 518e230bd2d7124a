package login

// preset gives what is publicly known of a provider: everything but the client, which is the user's own.
func preset(slug string) (Provider, bool) {
	p, ok := presets()[slug]
	p.Slug = slug
	return p, ok
}

// presets are taken from each provider's public documentation. Redirect "" is loopback; slack and notion accept https
// only for applications that are not under development, and show no code themselves.
func presets() map[string]Provider {
	return map[string]Provider{
		"google": {
			Title: "Google", Issuer: "https://accounts.google.com", Console: "https://console.cloud.google.com/auth/clients",
			AuthURL: "https://accounts.google.com/o/oauth2/v2/auth", TokenURL: "https://oauth2.googleapis.com/token",
			DeviceURL: "https://oauth2.googleapis.com/device/code", RevokeURL: "https://oauth2.googleapis.com/revoke",
			// Without both there is no refresh token at a second consent.
			Extra: map[string]string{"access_type": "offline", "prompt": "consent"},
		},
		"microsoft": {
			Title: "Microsoft", Console: "https://entra.microsoft.com/",
			AuthURL:   "https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
			TokenURL:  "https://login.microsoftonline.com/common/oauth2/v2.0/token",
			DeviceURL: "https://login.microsoftonline.com/common/oauth2/v2.0/devicecode",
			Redirect:  "http://localhost", // the only host whose port may differ from the registered one
		},
		"github": {
			Title: "GitHub", Console: "https://github.com/settings/developers",
			AuthURL: "https://github.com/login/oauth/authorize", TokenURL: "https://github.com/login/oauth/access_token",
			DeviceURL: "https://github.com/login/device/code",
		},
		"slack": {
			Title: "Slack", Console: "https://api.slack.com/apps", Separator: ",", Rotates: true,
			AuthURL: "https://slack.com/oauth/v2/authorize", TokenURL: "https://slack.com/api/oauth.v2.access",
		},
		"notion": {
			Title: "Notion", Console: "https://www.notion.so/profile/integrations", TokenAuth: "basic", Rotates: true,
			AuthURL: "https://api.notion.com/v1/oauth/authorize", TokenURL: "https://api.notion.com/v1/oauth/token",
			Extra: map[string]string{"owner": "user"},
		},
		"spotify": {
			Title: "Spotify", Console: "https://developer.spotify.com/dashboard", Rotates: true,
			AuthURL: "https://accounts.spotify.com/authorize", TokenURL: "https://accounts.spotify.com/api/token",
		},
		"linear": {
			Title: "Linear", Console: "https://linear.app/settings/api", Separator: ",", Rotates: true,
			AuthURL: "https://linear.app/oauth/authorize", TokenURL: "https://api.linear.app/oauth/token",
			RevokeURL: "https://api.linear.app/oauth/revoke",
		},
		"atlassian": {
			Title: "Atlassian", Console: "https://developer.atlassian.com/console/myapps/", Rotates: true,
			AuthURL: "https://auth.atlassian.com/authorize", TokenURL: "https://auth.atlassian.com/oauth/token",
			Extra: map[string]string{"audience": "api.atlassian.com", "prompt": "consent"},
		},
	}
}
