//! What the pages say on which people connect accounts, in each language. Names and reasons are filled in for `{}`, in order.

use connections::ConnectionError;
use kernel::Language;

/// The words of one language.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) language: Language,
    /// The service.
    connect: &'static str,
    /// Whoever asks.
    asks: &'static str,
    pub(crate) becomes: &'static str,
    pub(crate) sealed: &'static str,
    pub(crate) button: &'static str,
    pub(crate) cancel: &'static str,
    pub(crate) connected: &'static str,
    /// The service.
    is_connected: &'static str,
    /// The service and the account.
    is_connected_as: &'static str,
    /// The service.
    not_checked: &'static str,
    pub(crate) close: &'static str,
    pub(crate) go_on: &'static str,
    pub(crate) not_connected: &'static str,
    pub(crate) not_activated: &'static str,
    pub(crate) declined: &'static str,
    pub(crate) internal: &'static str,
    link_over: &'static str,
    /// The service and the reason.
    refused: &'static str,
    /// The service.
    unreachable: &'static str,
}

const ENGLISH: Words = Words {
    language: Language::En,
    connect: "Connect {}",
    asks: "{} asks for it.",
    becomes: "This becomes the connection",
    sealed: "What you type is sealed and used only to act for this account.",
    button: "Connect",
    cancel: "Cancel",
    connected: "Connected",
    is_connected: "{} is connected.",
    is_connected_as: "{} is connected as {}.",
    not_checked: "The credential was not checked: {} has no call for that. The first call shows whether it works.",
    close: "You can close this window.",
    go_on: "Continue",
    not_connected: "Not connected",
    not_activated: "Connection could not be activated. Please try again.",
    declined: "The account was not connected. You can close this window.",
    internal: "An internal error occurred. Please try again.",
    link_over: "The link is not valid any more. Ask for a new one.",
    refused: "{} refused the credential: {}",
    unreachable: "{} does not answer. Please try again in a moment.",
};

const GERMAN: Words = Words {
    language: Language::De,
    connect: "{} verbinden",
    asks: "{} bittet darum.",
    becomes: "Daraus wird die Verbindung",
    sealed: "Was Sie eingeben, wird versiegelt und nur benutzt, um für dieses Konto zu handeln.",
    button: "Verbinden",
    cancel: "Abbrechen",
    connected: "Verbunden",
    is_connected: "{} ist verbunden.",
    is_connected_as: "{} ist als {} verbunden.",
    not_checked: "Die Zugangsdaten wurden nicht geprüft: {} bietet dafür keinen Aufruf. Der erste Aufruf zeigt, ob sie gelten.",
    close: "Sie können dieses Fenster schließen.",
    go_on: "Weiter",
    not_connected: "Nicht verbunden",
    not_activated: "Das Konto konnte nicht verbunden werden. Bitte versuchen Sie es noch einmal.",
    declined: "Das Konto wurde nicht verbunden. Sie können dieses Fenster schließen.",
    internal: "Bei uns ist ein Fehler aufgetreten. Bitte versuchen Sie es noch einmal.",
    link_over: "Der Link gilt nicht mehr. Bitten Sie um einen neuen.",
    refused: "{} hat die Zugangsdaten abgelehnt: {}",
    unreachable: "{} antwortet nicht. Bitte versuchen Sie es gleich noch einmal.",
};

const FRENCH: Words = Words {
    language: Language::Fr,
    connect: "Connecter {}",
    asks: "{} vous le demande.",
    becomes: "Ce sera la connexion",
    sealed: "Ce que vous saisissez est scellé et ne sert qu'à agir pour ce compte.",
    button: "Connecter",
    cancel: "Annuler",
    connected: "Connecté",
    is_connected: "{} est connecté.",
    is_connected_as: "{} est connecté en tant que {}.",
    not_checked: "Les identifiants n'ont pas été vérifiés : {} n'offre pas d'appel pour cela. Le premier appel dira s'ils sont valables.",
    close: "Vous pouvez fermer cette fenêtre.",
    go_on: "Continuer",
    not_connected: "Non connecté",
    not_activated: "Le compte n'a pas pu être connecté. Veuillez réessayer.",
    declined: "Le compte n'a pas été connecté. Vous pouvez fermer cette fenêtre.",
    internal: "Une erreur s'est produite de notre côté. Veuillez réessayer.",
    link_over: "Ce lien n'est plus valable. Demandez-en un nouveau.",
    refused: "{} a refusé les identifiants : {}",
    unreachable: "{} ne répond pas. Veuillez réessayer dans un instant.",
};

const SPANISH: Words = Words {
    language: Language::Es,
    connect: "Conectar {}",
    asks: "{} lo solicita.",
    becomes: "Será la conexión",
    sealed: "Lo que escriba se guarda sellado y solo se usa para actuar por esta cuenta.",
    button: "Conectar",
    cancel: "Cancelar",
    connected: "Conectado",
    is_connected: "{} está conectado.",
    is_connected_as: "{} está conectado como {}.",
    not_checked: "Las credenciales no se han comprobado: {} no ofrece una llamada para ello. La primera llamada mostrará si funcionan.",
    close: "Puede cerrar esta ventana.",
    go_on: "Continuar",
    not_connected: "No conectado",
    not_activated: "No se pudo conectar la cuenta. Inténtelo de nuevo.",
    declined: "La cuenta no se conectó. Puede cerrar esta ventana.",
    internal: "Se produjo un error por nuestra parte. Inténtelo de nuevo.",
    link_over: "El enlace ya no es válido. Pida uno nuevo.",
    refused: "{} rechazó las credenciales: {}",
    unreachable: "{} no responde. Inténtelo de nuevo en un momento.",
};

fn fill(text: &str, values: &[&str]) -> String {
    let mut parts = text.split("{}");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for (part, value) in parts.zip(values) {
        filled.push_str(value);
        filled.push_str(part);
    }
    filled
}

impl Words {
    pub(crate) fn of(language: Language) -> &'static Self {
        match language {
            Language::En => &ENGLISH,
            Language::De => &GERMAN,
            Language::Fr => &FRENCH,
            Language::Es => &SPANISH,
        }
    }

    pub(crate) fn connect(&self, service: &str) -> String {
        fill(self.connect, &[service])
    }

    pub(crate) fn asks(&self, brand: &str) -> String {
        fill(self.asks, &[brand])
    }

    pub(crate) fn is_connected(&self, service: &str, account: Option<&str>) -> String {
        account.map_or_else(|| fill(self.is_connected, &[service]), |account| fill(self.is_connected_as, &[service, account]))
    }

    pub(crate) fn not_checked(&self, service: &str) -> String {
        fill(self.not_checked, &[service])
    }

    /// Why an account was not connected. What a provider or a field says stays in its own words.
    pub(crate) fn failure(&self, error: &ConnectionError) -> String {
        match error {
            // English pages say what the API says.
            _ if self.language == Language::En => error.to_string(),
            ConnectionError::BadAttempt => self.link_over.to_owned(),
            ConnectionError::Refused { integration, reason } => fill(self.refused, &[integration, reason]),
            ConnectionError::Unreachable { integration, .. } | ConnectionError::UpstreamServer { integration, .. } => {
                fill(self.unreachable, &[integration])
            }
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_fills_in_what_it_is_given() {
        for language in Language::ALL {
            let words = Words::of(language);
            assert_eq!(words.language, language);
            let (connect, asks) = (words.connect("Git{}Hub"), words.asks("Acme"));
            assert!(connect.contains("Git{}Hub") && asks.contains("Acme"), "{connect} {asks}");
            let done = words.is_connected("GitHub", Some("ann"));
            assert!(done.find("GitHub") < done.find("ann") && done.ends_with('.'), "{done}");
            let refused = ConnectionError::Refused { integration: "GitHub".to_owned(), reason: "no {}".to_owned() };
            assert!(words.failure(&refused).contains("GitHub") && words.failure(&refused).ends_with("no {}"));
            assert!(!words.failure(&ConnectionError::BadAttempt).is_empty());
        }
        assert_ne!(Words::of(Language::De).button, Words::of(Language::En).button);
    }
}
