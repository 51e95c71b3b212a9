//! How often an operation is meant among those of its app: people send mail more often than they empty the trash.
//!
//! Where an app does not say so itself: for well-known apps, what people do with them; for others, what is done with the things that
//! most automation is about.

use super::{
    document::Integration,
    stem::stem,
    tokens::{is_stop, tokens},
    verbs::{Intent, Intents},
};

/// How often the first of an app's operations is meant, the next two, and the next three.
const TIERS: [f32; 6] = [1.0, 0.7, 0.7, 0.4, 0.4, 0.4];
/// The most that is said of an app that is not known.
const UNKNOWN: f32 = 0.35;

/// Well-known apps by their collapsed names, and what people do with them, most often first: words that must all be there, with others
/// for the same after a stroke.
const KNOWN: &[(&str, &[&str])] = &[
    (
        "gmail",
        &[
            "send message|email|mail",
            "many|list|search|fetch message|email|mail",
            "reply",
            "label message|email",
            "get message|email",
            "create draft",
        ],
    ),
    (
        "microsoftoutlook|outlook",
        &[
            "send message|email|mail",
            "many|list|search message|email|mail",
            "reply",
            "create event",
            "create draft",
            "get message|email|mail",
        ],
    ),
    ("sendemail|smtp|resend|sendgrid|mailgun|mandrill|brevo|postmark", &["send email|mail"]),
    (
        "slack",
        &["send|post message", "history|many|list message", "many|list user|member", "many|list channel", "upload file", "create channel"],
    ),
    ("telegram", &["send text message", "get file", "send photo", "send document", "edit message", "send video|audio"]),
    (
        "discord|mattermost|webex|rocketchat|googlechat",
        &["send|create|post message|post", "many|list message|post", "create channel|space", "many|list member|user"],
    ),
    ("microsoftteams", &["send|create message", "many|list message", "create channel", "create meeting|task"]),
    (
        "whatsapp|whatsappbusinesscloud|twilio|vonage|messagebird|plivo",
        &["send message|sms|text", "get|download media", "make call", "send template"],
    ),
    (
        "googlesheets",
        &["append row|value", "get|read row|value", "update row|value", "append update row", "create spreadsheet", "clear sheet|value"],
    ),
    ("microsoftexcel|excel", &["append row|sheet|table", "get row|sheet|workbook", "update row|sheet|range", "lookup"]),
    ("airtable", &["create record", "search|many|list record", "update record", "upsert record", "get record", "delete record"]),
    (
        "notion",
        &["create database|item page|item", "many|query database|source", "update page", "append block|text", "create page", "get page"],
    ),
    (
        "baserow|nocodb|seatable|grist|coda|supabase|smartsheet|googlebigquery|bigquery|snowflake",
        &["create|insert|upsert row", "many|list|get row", "update row", "execute|run query|sql", "get row", "delete row"],
    ),
    (
        "postgres|postgresql|mysql|microsoftsql|mssql|mariadb|questdb|timescaledb|oracledatabase|clickhouse|cratedb",
        &["execute|run query|sql", "insert row", "select row", "update row", "upsert|insert update row", "delete row|table"],
    ),
    ("mongodb", &["find document", "insert document", "update document", "aggregate document"]),
    ("redis", &["get value|key", "set value|key", "increment", "push list", "publish"]),
    ("googledrive", &["upload file", "search|many|list file", "download file", "create folder", "share file", "move file"]),
    (
        "dropbox|box|onedrive|microsoftonedrive|nextcloud|googlecloudstorage",
        &["upload file", "list|many|search file|folder|item", "download file", "create folder", "share|link file", "copy|move file"],
    ),
    ("awss3|s3|ftp|sftp", &["upload file", "download file", "many|list file", "create bucket|folder", "delete file"]),
    ("googlecalendar", &["create event", "many|list event", "update event", "delete event", "availability|free", "get event"]),
    (
        "calendly|calcom|zoom|gotowebinar|googlemeet",
        &["create meeting|link|webinar", "many|list meeting|event|webinar", "get meeting|event", "cancel|delete meeting|event"],
    ),
    ("googledocs", &["update|append document|text", "create document", "get document", "replace text"]),
    ("googleslides", &["create presentation", "replace text", "get page|slide"]),
    (
        "googletasks|todoist|microsofttodo|ticktick",
        &["create task", "many|list task", "complete|close|status task", "update task", "delete task", "get task"],
    ),
    ("googlecontacts", &["create contact", "search|many|list contact", "update contact", "get contact"]),
    ("googleanalytics|googlesearchconsole|matomo|plausible|mixpanel|posthog", &["report|get report|data", "query", "event"]),
    ("googleforms|typeform|jotform|tally|surveymonkey", &["many|list response|submission", "many|list form", "create form", "get form"]),
    (
        "openai|anthropic|googlegemini|gemini|mistral|mistralai|perplexity|groq|cohere|deepseek|ollama|azureopenai|xai",
        &[
            "message|create|chat model|completion|message|response",
            "generate image",
            "analyze image",
            "transcribe recording|audio",
            "generate audio",
            "create embedding",
        ],
    ),
    ("huggingface|replicate|stabilityai", &["run|create inference|prediction|image"]),
    ("elevenlabs|deepgram|assemblyai", &["text speech", "speech text", "transcribe"]),
    ("deepl|googletranslate", &["translate"]),
    ("bravesearch|serpapi|tavily|googlesearch|searxng|exa", &["search"]),
    ("firecrawl|apify|scrapingbee|browserless|jinaai", &["scrape|read url|page", "run actor|crawl", "crawl", "search"]),
    ("httprequest|http|webhook", &["request", "respond"]),
    ("github", &["create issue", "get file", "edit|update file", "create file", "many|list|get issue", "create pull request"]),
    ("gitlab", &["create issue", "create merge request", "many|list|get issue", "get file", "edit|update file", "create file"]),
    ("bitbucket", &["create pull request", "many|list pull request", "many|list repository"]),
    (
        "jira|linear|youtrack|redmine|shortcut",
        &["create issue", "many|search|list issue", "update issue", "add|create comment", "get issue", "transition status"],
    ),
    (
        "asana|clickup|wrike|meistertask|teamwork|basecamp|taiga",
        &["create task", "many|list|search task", "update task", "get task", "add|create comment", "create project"],
    ),
    ("monday", &["create item", "change|update column", "many|list item", "update|add create", "get item", "create board"]),
    ("trello", &["create card", "update card", "many|list|get card", "add|create comment", "get card"]),
    ("confluence", &["create page", "search|get content|page", "update page"]),
    ("hubspot", &["create update contact", "create contact", "search|many|get contact", "create deal", "update deal", "create company"]),
    (
        "salesforce",
        &[
            "create lead",
            "query|search|many record|object|lead",
            "create contact|record",
            "update lead|record",
            "upsert",
            "create opportunity",
        ],
    ),
    (
        "pipedrive|zohocrm|copper|freshworkscrm|keap|activecampaign|gohighlevel|highlevel|close|attio",
        &[
            "create deal|lead|contact",
            "create person|contact",
            "search|many|list deal|person|lead|contact",
            "update deal|lead|contact",
            "create note|activity",
            "get deal|person|lead|contact",
        ],
    ),
    (
        "mailchimp|mailerlite|convertkit|kit|getresponse|klaviyo|sendy|brevo",
        &[
            "create|add member|subscriber|contact",
            "update member|subscriber|contact",
            "send campaign",
            "many|list|get member|subscriber|contact",
            "create campaign",
        ],
    ),
    (
        "zendesk|freshdesk|servicenow|helpscout|zammad|freshservice|gorgias",
        &[
            "create ticket|conversation|incident",
            "many|list|search ticket|conversation|incident",
            "update ticket|incident",
            "reply",
            "get ticket|conversation|incident",
            "create user|contact",
        ],
    ),
    (
        "intercom",
        &["reply conversation", "create contact|lead|user", "search|many conversation|contact", "send message", "create conversation"],
    ),
    (
        "shopify|woocommerce|magento|magento2|bigcommerce",
        &["many|list|search|get order", "many|list|search|get product", "create product", "update product", "create order", "get order"],
    ),
    (
        "stripe|paddle|chargebee|square|paypal",
        &[
            "create customer|payment",
            "many|list invoice|charge|payment|transaction",
            "create invoice|link|charge",
            "get customer|charge",
            "many|list customer",
            "create refund",
        ],
    ),
    (
        "quickbooks|quickbooksonline|xero|harvest|invoiceninja|zohobooks|freshbooks",
        &["create invoice", "many|list|get invoice", "create customer|contact", "create bill|payment", "many customer|contact"],
    ),
    (
        "wordpress|ghost|contentful|strapi|webflow|storyblok|sanity",
        &["create post|entry|item", "update post|entry|item", "many|list|get post|entry|item", "create page", "publish"],
    ),
    ("linkedin|facebook|facebookgraphapi|instagram|pinterest|mastodon|bluesky|threads", &["create|publish post|request", "get|many post"]),
    ("twitter|x", &["create tweet|post", "search tweet|post", "retweet|repost", "like tweet", "send message"]),
    ("reddit", &["create|submit post", "many|get|search post", "create comment|reply", "search post"]),
    ("youtube", &["upload video", "many|search|list video", "get video", "many|list playlist", "update video", "list comment"]),
    ("spotify", &["add playlist|queue", "search track|playlist", "get playlist|track", "create playlist"]),
    ("rssread|rss|hackernews", &["read", "many|list|top article|story|item"]),
    (
        "sentry|sentryio|pagerduty|datadog|grafana|opsgenie|uptimerobot",
        &["many|list|get issue|incident|monitor|event", "create incident|event|alert", "update issue|incident"],
    ),
    (
        "netlify|vercel|circleci|jenkins|travisci",
        &[
            "trigger|create|deploy build|deployment|pipeline|job|deploy",
            "many|list deploy|deployment|pipeline|build",
            "get deploy|deployment",
        ],
    ),
    (
        "cloudflare|digitalocean|awslambda|awsec2",
        &["create record|droplet|instance", "invoke|run function", "many|list record|droplet|instance"],
    ),
    ("figma", &["get file", "many|list comment"]),
    ("pinecone|qdrant|weaviate|milvus|chroma", &["upsert|insert point|vector|document", "search|query|get point|vector|document"]),
    ("wikipedia", &["summary|search page|article"]),
    ("openweathermap|openmeteo|weather", &["current weather", "forecast"]),
];

/// The things that most automation is about, as stems.
const MAIN_THINGS: &[&str] = &[
    "message", "email", "mail", "row", "record", "page", "item", "issu", "task", "event", "contact", "lead", "deal", "ticket", "file",
    "document", "post", "card", "order", "custom", "invoic", "payment", "product", "imag", "video", "chat", "complet", "respons", "queri",
    "member", "subscrib", "meet", "compani", "entri", "text", "sms",
];

/// How often the operation is meant among those of its app, from 0 to 1. `words` are the lower-case words of its name.
pub(super) fn usual(integration: &Integration, words: &[&str], resource: &str, intents: Intents) -> f32 {
    let name = stems(words.iter().copied());
    let resource = tokens(resource);
    let resource = stems(resource.iter().filter(|token| !token.joined).map(|token| token.text.as_str()));
    match known(integration) {
        _ if integration.name.is_empty() => 0.0,
        Some(phrases) => phrases.iter().position(|phrase| is_it(phrase, &name, &resource)).map_or(0.0, |at| TIERS[at.min(TIERS.len() - 1)]),
        None => UNKNOWN * verb(intents) * thing(&name),
    }
}

fn stems<'w>(words: impl Iterator<Item = &'w str>) -> Vec<String> {
    let mut stems: Vec<String> = words.filter(|word| !is_stop(word) && *word != "new").map(stem).collect();
    stems.sort_unstable();
    stems.dedup();
    stems
}

fn known(integration: &Integration) -> Option<&'static [&'static str]> {
    let collapsed = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let (name, key) = (collapsed(&integration.name), collapsed(&integration.key));
    let name = name.strip_suffix("trigger").unwrap_or(&name);
    KNOWN.iter().find(|(apps, _)| apps.split('|').any(|app| app == name || app == key)).map(|(_, phrases)| *phrases)
}

/// Whether a name says what a phrase says, and hardly more.
fn is_it(phrase: &str, name: &[String], resource: &[String]) -> bool {
    let mut slots = 0;
    let all = phrase.split(' ').all(|slot| {
        slots += 1;
        slot.split('|').map(stem).any(|word| name.contains(&word) || resource.contains(&word))
    });
    all && name.len() <= slots + 1
}

fn verb(intents: Intents) -> f32 {
    let shares = [
        (Intent::Send, 1.0),
        (Intent::Create, 1.0),
        (Intent::Run, 0.9),
        (Intent::List, 0.8),
        (Intent::Search, 0.8),
        (Intent::Update, 0.7),
        (Intent::Get, 0.6),
        (Intent::Reply, 0.6),
        (Intent::Upload, 0.6),
        (Intent::Download, 0.6),
        (Intent::Share, 0.3),
        (Intent::Move, 0.3),
        (Intent::Delete, 0.2),
    ];
    shares.into_iter().find(|(intent, _)| intents.has(*intent)).map_or(0.4, |(_, share)| share)
}

fn thing(stems: &[String]) -> f32 {
    let is_main = stems.iter().any(|stem| MAIN_THINGS.contains(&stem.as_str()));
    let plain = if stems.len() <= 3 { 1.0 } else { 0.7 };
    if is_main { plain } else { 0.4 * plain }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::verbs;

    fn usage(app: &str, name: &str) -> f32 {
        let integration = Integration { key: app.to_lowercase(), name: app.into(), ..Integration::default() };
        let lower = name.to_lowercase();
        let words: Vec<&str> = lower.split(' ').collect();
        usual(&integration, &words, "", verbs::declared(&words))
    }

    #[test]
    fn what_people_do_comes_before_what_they_could() {
        for (app, more, less) in [
            ("Gmail", "Send a message", "Create a label"),
            ("Gmail", "Get many messages", "Delete a thread"),
            ("Google Sheets", "Append row in sheet", "Delete rows or columns from sheet"),
            ("Slack", "Send a message", "Archive a channel"),
            ("Acme", "Create a ticket", "Create a webhook"),
            ("Acme", "List orders", "Delete an order"),
        ] {
            assert!(usage(app, more) > usage(app, less) + 0.1, "{app}: {more} {} {less} {}", usage(app, more), usage(app, less));
        }
    }

    #[test]
    fn main_things_are_stems() {
        for (word, thing) in [("issues", "issu"), ("customer", "custom"), ("queries", "queri"), ("company", "compani"), ("images", "imag")]
        {
            assert_eq!(stem(word), thing);
        }
    }
}
